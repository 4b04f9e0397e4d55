# The frame as an older and as a newer node knows it; only the test of evolution reads this.
@0xdd87a2efb1cbd62e;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("sangam::evolution");

struct OlderFrame {
  # Before `epoch`, before Sampling's later members, before any message after Submit.
  magic @0 :UInt32;
  version @1 :UInt16;
  body :union {
    envelope @2 :OlderEnvelope;
    unused @3 :Void;
  }
}

struct OlderEnvelope {
  from @0 :Text;
  to @1 :Text;
  id @2 :UInt64;
  correlation @3 :UInt64;
  trace @4 :AnyPointer;
  unusedEpoch @5 :UInt64;
  message :union {
    submit @6 :OlderSubmit;
    unused @7 :Void;
  }
}

struct OlderSubmit {
  request @0 :UInt64;
  attempt @1 :UInt32 = 1;
  model @2 :Text;
  tenant @3 :Text;
  serviceClass @4 :UInt16 = 1;
  ttftInMillis @5 :Int64;
  expiresInMillis @6 :Int64;
  requeueWhenLate @7 :Bool;
  prompt @8 :List(UInt32);
  generated @9 :List(UInt32);
  sampling @10 :OlderSampling;
  tokensTo @11 :Text;
}

struct OlderSampling {
  temperature @0 :Float64 = 1.0;
  topK @1 :Int64;
}

struct NewerFrame {
  # With a frame that we do not know.
  magic @0 :UInt32;
  version @1 :UInt16;
  body :union {
    envelope @2 :NewerEnvelope;
    hello @3 :AnyPointer;
    welcome @4 :AnyPointer;
    heartbeat @5 :NewerHeartbeat;
    actorOpened @6 :AnyPointer;
    actorClosed @7 :AnyPointer;
    credit @8 :AnyPointer;
    bye @9 :AnyPointer;
    later @10 :Text;
  }
}

struct NewerHeartbeat {
  framesSent @0 :UInt64;
  load @1 :Float64;
  note @2 :Text;
}

struct NewerEnvelope {
  from @0 :Text;
  to @1 :Text;
  id @2 :UInt64;
  correlation @3 :UInt64;
  trace @4 :AnyPointer;
  epoch @5 :UInt64;
  message :union {
    submit @6 :AnyPointer;
    m7 @7 :Void;
    m8 @8 :Void;
    m9 @9 :Void;
    m10 @10 :Void;
    m11 @11 :Void;
    m12 @12 :Void;
    m13 @13 :Void;
    m14 @14 :Void;
    m15 @15 :Void;
    m16 @16 :Void;
    m17 @17 :Void;
    m18 @18 :Void;
    m19 @19 :Void;
    m20 @20 :Void;
    m21 @21 :Void;
    m22 @22 :Void;
    m23 @23 :Void;
    m24 @24 :Void;
    m25 @25 :Void;
    m26 @26 :Void;
    m27 @27 :Void;
    m28 @28 :Void;
    m29 @29 :Void;
    m30 @30 :Void;
    m31 @31 :Void;
    m32 @32 :Void;
    m33 @33 :Void;
    m34 @34 :Void;
    m35 @35 :Void;
    m36 @36 :Void;
    m37 @37 :Void;
    m38 @38 :Void;
    m39 @39 :Void;
    m40 @40 :Void;
    m41 @41 :Void;
    m42 @42 :Void;
    m43 @43 :Void;
    m44 @44 :Void;
    m45 @45 :Void;
    m46 @46 :Void;
    m47 @47 :Void;
    m48 @48 :Void;
    m49 @49 :Void;
    m50 @50 :Void;
    m51 @51 :Void;
    m52 @52 :Void;
    m53 @53 :Void;
    m54 @54 :Void;
    m55 @55 :Void;
    m56 @56 :Void;
    m57 @57 :Void;
    m58 @58 :Void;
    m59 @59 :Void;
    later @60 :Text;
  }
}
