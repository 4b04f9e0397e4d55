# The contract of the bulk channel: what a node that wants bytes and a node that has them say to each other, beside
# the mesh and never in its way. Rules of numbers and names are those of mesh.capnp.

@0xc3f1a7d25b9e4806;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("sangam::schema");

using Mesh = import "mesh.capnp";

struct BulkFrame {
  # A session is one DEALER of the reader, connected to the ROUTER of the node that has the bytes, under a routing id of
  # its own. A ZeroMQ message is one part with this as its root, and for a BulkPart a second part with the bytes.
  # The reader says BulkOpen, then BulkAsk and BulkCredit as it likes; the server answers with BulkAlive, BulkPart,
  # BulkRefused. Either side ends the session with BulkClose, or by its death; then all that was asked is void.

  magic @0 :UInt32;
  # 0x53424c4b ("SBLK").

  version @1 :UInt16;
  # As in Frame: 1 now, of the frames' meaning.

  body :union {
    # What is said. An unknown member is counted and skipped.

    bulkOpen @2 :BulkOpen;
    # Opens the session.

    bulkAsk @3 :BulkAsk;
    # Wants a blob.

    bulkCredit @4 :BulkCredit;
    # Can take more parts.

    bulkAlive @5 :BulkAlive;
    # The server's sign of life.

    bulkPart @6 :BulkPart;
    # Bytes of a blob.

    bulkRefused @7 :BulkRefused;
    # A blob cannot be had.

    bulkClose @8 :BulkClose;
    # The end of the session.
  }
}

struct BulkOpen {
  # Reader -> server, once, first. Answered by BulkAlive, or by BulkClose where the reader is not in the registry.

  node @0 :Text;
  # The reader's node. With keys it must be the one that the key belongs to.

  incarnation @1 :UInt64;
  # Of the reader's node.
}

struct BulkAsk {
  # Reader -> server: send this blob. Answered, in the order of the asks, by BulkParts that cover it or one BulkRefused.
  # At most 1,024 may wait.

  number @0 :UInt64;
  # Counts the asks of the session from 1.

  owner @1 :Text;
  # The actor whose blob it is.

  name @2 :Text;
  # What the owner calls it.
}

struct BulkCredit {
  # Reader -> server: how many BulkParts the session may have had in all. It only rises; a server without credit waits,
  # so no more parts are on the way than the reader has room for.

  parts @0 :UInt64;
  # From the session's beginning on.
}

struct BulkAlive {
  # Server -> reader: in answer to BulkOpen, and then at every heartbeat interval, whether there is credit or not.

  incarnation @0 :UInt64;
  # Of the server's node; another one than before means that the session is over.
}

struct BulkPart {
  # Server -> reader: some bytes of the first blob that was asked for and is not complete. In order, without gaps; the
  # last one ends where the blob ends. A blob of no bytes is one part of none.

  number @0 :UInt64;
  # Of the ask.

  size @1 :Int64;
  # Of the whole blob, the same in all its parts.

  offset @2 :Int64;
  # Where these bytes lie in it.

  bytes @3 :Int64;
  # How many; the message's second part has just these.

  hash @4 :Data;
  # 16 bytes: XXH3-128 of the whole blob, the same in all its parts. The reader checks it when it has all.
}

struct BulkRefused {
  # Server -> reader: this blob is not there, or no longer.

  number @0 :UInt64;
  # Of the ask.

  code @1 :Mesh.ErrorCode;
  # Why, for programs.

  why @2 :Text;
  # Why, for logs.
}

struct BulkClose {
  # Both ways: the session is over.

  why @0 :Text;
  # For logs.
}
