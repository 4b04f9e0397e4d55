# The contract of the mesh: every message that actors exchange, and the frames in which nodes carry them.
#
# Names follow messages/vocabulary: `ttft_in` of type Millis is `ttftInMillis` here, and a test walks both
# sides. Numbers never change and are never used again; new fields and union members go to the end, so an old
# reader skips what it does not know and a new reader finds the default where an old writer said nothing.
#
# Delivery of every message: at most once, in order between two actors that both live. What was on the way to
# or from an actor that is reported lost is gone. Durations count from the moment of sending; hosts need no
# common clock. A Text that names an actor, a node or a model is 1 to 255 bytes long.

@0xb0ad03d1dce90ec3;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("sangam::schema");

# ---- Frames: what one node says to another -----------------------------------------------------------------

struct Frame {
  # One ZeroMQ message of one part. A pair of nodes has two lanes, one each way. The speaker's DEALER is
  # connected to the listener's ROUTER under a routing id of its own for every new lane. The speaker sends
  # Hello until Welcome answers, then ActorOpened for each of its actors, then letters. The listener answers
  # on the same connection with Welcome, Credit or Bye and nothing else.

  magic @0 :UInt32;
  # 0x53414e47 ("SANG"). Tells a frame of the mesh from an empty or foreign one.

  version @1 :UInt16;
  # Of the frames' meaning, 1 now. It rises only with a change that an older node would misunderstand; such
  # nodes refuse each other.

  body :union {
    # What is said. An unknown member is counted and skipped.

    envelope @2 :Envelope;
    # A letter from actor to actor.

    hello @3 :Hello;
    # Opens a lane.

    welcome @4 :Welcome;
    # The listener's first answer.

    heartbeat @5 :Heartbeat;
    # Sign of life.

    actorOpened @6 :ActorOpened;
    # An actor can be reached.

    actorClosed @7 :ActorClosed;
    # An actor cannot be reached any more.

    credit @8 :Credit;
    # The listener can take more.

    bye @9 :Bye;
    # The end of a lane.
  }
}

struct Hello {
  # Speaker -> listener, first on a lane and again every heartbeat interval until answered. A new lane ends the
  # speaker's former one: all that was on it is lost, and the listener begins its own lane anew as well, unless
  # this one is an answer already. Loss: repeated.

  node @0 :Text;
  # Who speaks; must be in the listener's registry.

  incarnation @1 :UInt64;
  # Rises with every start of the node. A lower one than that of a node which is present is refused.

  lane @2 :UInt64;
  # Counts the speaker's lanes from 1. One that is not above the last is over: it was greeted before.

  isAnswer @3 :Bool;
  # The lane was begun because the listener had begun one, or had said Bye to one that was not welcomed.
}

struct Welcome {
  # Listener -> speaker, once per Hello. Loss: the Hello is repeated.

  node @0 :Text;
  # Who listens; the speaker checks that it has reached whom it meant.

  incarnation @1 :UInt64;
  # Of the listener.

  grantedBytes @2 :Int64;
  # As in Credit.
}

struct Heartbeat {
  # Speaker -> listener, every heartbeat interval (200 ms). A node that was silent for the timeout (1 s) is
  # lost; every frame is a sign of life.

  framesSent @0 :UInt64;
  # Frames of this lane before this one, Hellos not counted. If the listener has seen another number, the
  # connection has dropped something: the lane ends.
}

struct ActorOpened {
  # Speaker -> listener, for each actor of the node after Welcome and whenever one opens. Comes before the
  # actor's first letter.

  actor @0 :Text;
  # Its name in the mesh.

  incarnation @1 :UInt64;
  # Of the actor. A name that another node holds goes to the higher incarnation.
}

struct ActorClosed {
  # Speaker -> listener, when an actor of the node closes; after its last letter.

  actor @0 :Text;
  # Its name in the mesh.

  why @1 :Text;
  # For people.
}

struct Credit {
  # Listener -> speaker, after actors have consumed letters: when a quarter of the window came free, and with
  # the heartbeat. Loss is harmless: the number is a total.

  grantedBytes @0 :Int64;
  # How many bytes of letters the speaker may have sent on this lane in all. Other frames need no credit.
}

struct Bye {
  # Either side: the lane is over, with all that is on the way. Loss: the timeout tells the same later.

  why @0 :Text;
  # For people.
}

# ---- The letter --------------------------------------------------------------------------------------------

struct Envelope {
  # What every letter says beside its message.

  from @0 :Text;
  # The sending actor.

  to @1 :Text;
  # The receiving actor. Letters to an actor that is away are dropped and counted.

  id @2 :UInt64;
  # Unique per sending node and incarnation; never 0.

  correlation @3 :UInt64;
  # The id of the letter that caused this one; 0: none.

  trace @4 :TraceContext;
  # Which request's trace this belongs to.

  epoch @5 :UInt64;
  # Of the placement under which an order was given; 0: no order. A worker refuses an older epoch.

  message :union {
    # One of the messages below. An unknown member is refused and counted.

    submit @6 :Submit;                     # Gateway -> queue: serve this.
    accepted @7 :Accepted;                 # Queue -> gateway: it is mine now.
    refused @8 :Refused;                   # Queue -> gateway: it will not be served.
    started @9 :Started;                   # Queue -> gateway: a worker has it.
    interrupted @10 :Interrupted;          # Queue -> gateway: its worker died.
    cancel @11 :Cancel;                    # Gateway -> all: stop.
    enqueued @12 :Enqueued;                # Queue -> scheduler: it waits.
    withdrawn @13 :Withdrawn;              # Queue -> scheduler: it waits no longer.
    dispatch @14 :Dispatch;                # Scheduler -> queue: give it to this worker.
    cannotBeOnTime @15 :CannotBeOnTime;    # Scheduler -> queue: too late.
    run @16 :Run;                          # Queue -> worker: do it.
    tokensProduced @17 :TokensProduced;    # Worker -> gateway: the answer, in pieces.
    prefillFinished @18 :PrefillFinished;  # Worker -> scheduler: free again.
    runEnded @19 :RunEnded;                # Worker -> queue, scheduler: done.
    instanceReady @20 :InstanceReady;      # Worker -> all: I serve it.
    instanceGone @21 :InstanceGone;        # Worker -> all: I serve it no more.
    instanceStatus @22 :InstanceStatus;    # Worker -> gateways: counts.
    queueStatus @23 :QueueStatus;          # Queue -> gateways, oracle: counts.
    actorFound @24 :ActorFound;            # Mesh -> all: an actor is there.
    actorLost @25 :ActorLost;              # Mesh -> all: an actor is gone.
    instanceState @26 :InstanceState;      # Worker -> lifecycle, gateways: what it holds of a model.
    order @27 :Order;                      # Lifecycle -> worker: change that.
    orderEnded @28 :OrderEnded;            # Worker -> lifecycle: done, or why not.
    wanted @29 :Wanted;                    # Scheduler -> lifecycle: requests wait, and nobody serves.
    unservable @30 :Unservable;            # Lifecycle -> queue: it cannot be had at present.
    command @31 :Command;                  # Gateway -> lifecycle: an operator's wish.
    commandEnded @32 :CommandEnded;        # Lifecycle -> gateway: what became of it.
    workerMemory @33 :WorkerMemory;        # Worker -> gateways, lifecycle: bytes.
    handOver @34 :HandOver;                # Worker -> worker: go on with this run.
    handOverEnded @35 :HandOverEnded;      # Worker -> worker: it is mine, or why not.
    runMoved @36 :RunMoved;                # Worker -> queue, scheduler: it is mine.
    reserveKv @37 :ReserveKv;              # Worker -> worker: set pages aside, a prompt will be computed for you.
    kvReserved @38 :KvReserved;            # Worker -> worker: they are, or why not.
    telemetry @39 :Telemetry;              # Worker -> oracle, placement, autoscaler, gateways: what it does.
    served @40 :Served;                    # Gateway -> oracle: what clients got.
    modelTable @41 :ModelTable;            # Worker -> placement, oracle: what a model is made of.
    forecast @42 :Forecast;                # Oracle -> placement, autoscaler, gateways: what is needed.
    plan @43 :Plan;                        # Placement, autoscaler -> lifecycle, each other: what shall be where.
    askQuote @44 :AskQuote;                # Gateway -> scheduler: when would it be there?
    quoted @45 :Quoted;                    # Scheduler -> queue -> gateway: then.
  }
}

struct TraceContext {
  # W3C Trace Context: which trace and span this message belongs to.

  trace @0 :Data;
  # 16 bytes, or none where there is no trace.

  span @1 :Data;
  # 8 bytes, or none.
}

# ---- Shared parts ------------------------------------------------------------------------------------------

enum ServiceClass {
  # In what order overload is felt: best effort first, deadline last.

  deadline @0;    # The first token has a due time.
  normal @1;      # As soon as fair.
  bestEffort @2;  # When there is room, with a floor share.
}

enum FinishReason {
  # Why a stream of tokens ended.

  none @0;       # It goes on.
  stop @1;       # A stop token.
  length @2;     # maxTokens or the context's end.
  cancelled @3;  # The client left or asked to stop.
  failed @4;     # An error; code and why say which.
}

enum ErrorCode {
  # Each code exists because some caller reacts to it in its own way.

  none @0;             # No error.
  invalidInput @1;     # Repeating cannot help.
  notFound @2;         # No such model or actor.
  contextLength @3;    # Prompt and output do not fit.
  queueFull @4;        # Retry after the hint.
  cannotBeOnTime @5;   # Retry after the hint.
  expired @6;          # The deadline passed before execution.
  cancelled @7;        # On the client's wish.
  unavailable @8;      # A part is away; retry.
  exhausted @9;        # Memory or disk is full.
  corrupt @10;         # Damaged or unknown bytes.
  unauthorized @11;    # No key, or an unknown one.
  internal @12;        # A promise was broken.
}

struct LogitBias {
  # A client's wish about one token.

  token @0 :UInt32;
  # An index into the model's vocabulary.

  bias @1 :Float64;
  # Added to the logit.
}

struct Sampling {
  # How the next token is chosen. The draw at a position depends on (seed, position) only.

  temperature @0 :Float64 = 1.0;
  # 0: greedy.

  topK @1 :Int64;
  # Only the k most likely tokens; 0: all.

  topP @2 :Float64 = 1.0;
  # Only the most likely tokens that hold this much probability.

  minP @3 :Float64;
  # Only tokens with at least this share of the most likely one's probability.

  repetitionPenalty @4 :Float64 = 1.0;
  # Divides positive and multiplies negative logits of tokens seen.

  presencePenalty @5 :Float64;
  # Subtracted once from the logit of a token generated before.

  frequencyPenalty @6 :Float64;
  # Subtracted for each time a token was generated.

  logitBias @7 :List(LogitBias);
  # At most one entry a token.

  seed @8 :UInt64;
  # Of the counter-based generator.

  maxTokens @9 :Int64 = 16;
  # Generated tokens over all attempts; finish `length` when reached.

  minTokens @10 :Int64;
  # No stop token before this many.

  stopTokens @11 :List(UInt32);
  # The model's end tokens and the request's own, in that order of use.

  ignoreEos @12 :Bool;
  # Stop tokens do not stop.

  logprobs @13 :Int64 = -1;
  # How many alternatives beside the chosen token; -1: no logprobs.
}

struct TokenLogprob {
  # A token and how likely it was.

  token @0 :UInt32;
  # An index into the model's vocabulary.

  logprob @1 :Float64;
  # Natural logarithm, before temperature and filters.
}

struct PositionLogprobs {
  # The probabilities at one position.

  chosen @0 :TokenLogprob;
  # The token that was taken.

  top @1 :List(TokenLogprob);
  # The most likely alternatives, best first.
}

# ---- The way of a request ----------------------------------------------------------------------------------
# `request` names a request for life; `attempt` counts the tries at it from 1. A message about an attempt that
# is not the newest is ignored, so every message here may be repeated.

struct Submit {
  # Gateway -> queue, once per attempt. Answered by Accepted or Refused. A newer attempt replaces the older one.
  # Loss: the queue is reported lost, and the gateway submits again.

  request @0 :UInt64;
  # Chosen by the gateway: its place among gateways (8 bits), its incarnation (24), a counter (32).

  attempt @1 :UInt32 = 1;
  # Which try this is.

  model @2 :Text;
  # As clients spell it.

  tenant @3 :Text;
  # Whom quota and fair share belong to; may be empty.

  serviceClass @4 :ServiceClass = normal;
  # In what order it feels overload.

  ttftInMillis @5 :Int64;
  # Time left until the first token is due; only for the deadline class.

  expiresInMillis @6 :Int64;
  # Dropped unexecuted after this long; 0: never.

  requeueWhenLate @7 :Bool;
  # Deadline class: serve as best effort instead of refusing.

  prompt @8 :List(UInt32);
  # Token ids, begin token included.

  generated @9 :List(UInt32);
  # What the client has already got from earlier attempts.

  sampling @10 :Sampling;
  # How tokens are chosen.

  tokensTo @11 :Text;
  # The gateway that holds the client.
}

struct Accepted {
  # Queue -> gateway, once per Submit that is not refused: the queue owns the request now. Loss: the queue or
  # the gateway is gone.

  request @0 :UInt64;
  # As in Submit.

  attempt @1 :UInt32 = 1;
  # As in Submit.
}

struct Refused {
  # Queue -> gateway, instead of tokens: at submission, or later when a deadline cannot be met any more. Ends
  # the attempt.

  request @0 :UInt64;
  # As in Submit.

  attempt @1 :UInt32 = 1;
  # As in Submit.

  code @2 :ErrorCode;
  # Decides the HTTP status.

  why @3 :Text;
  # For the client: which limit, which numbers, what to do.

  retryAfterMillis @4 :Int64;
  # When capacity is expected; 0: unknown.
}

struct Started {
  # Queue -> gateway, when the request is handed to a worker; once per attempt. Loss is harmless.

  request @0 :UInt64;
  # As in Submit.

  attempt @1 :UInt32 = 1;
  # As in Submit.

  worker @2 :Text;
  # Whose loss would interrupt the attempt.

  queuedMillis @3 :Int64;
  # How long it waited in the queue.
}

struct Interrupted {
  # Queue -> gateway: this attempt is lost (its worker died). The gateway submits again with the tokens so far.

  request @0 :UInt64;
  # As in Submit.

  attempt @1 :UInt32 = 1;
  # The lost one.

  why @2 :Text;
  # For logs.
}

struct Cancel {
  # Gateway -> queue -> scheduler or worker: stop all work on the request. Ends in RunEnded if a worker had
  # begun. Cancelling what is not known is no error.

  request @0 :UInt64;
  # As in Submit.
}

struct Enqueued {
  # Queue -> scheduler, once per attempt and again when the scheduler appears anew: the numbers of a waiting
  # request, never its prompt. A newer attempt replaces the older.

  request @0 :UInt64;
  # As in Submit.

  attempt @1 :UInt32 = 1;
  # As in Submit.

  model @2 :Text;
  # Which instances can serve it.

  serviceClass @3 :ServiceClass = normal;
  # As in Submit.

  rank @4 :UInt64;
  # The queue's fair order among what has no deadline: lowest first.

  ttftInMillis @5 :Int64;
  # As in Submit, counted from this sending.

  requeueWhenLate @6 :Bool;
  # As in Submit.

  prefillTokens @7 :Int64;
  # Prompt and already generated tokens.

  outputMax @8 :Int64;
  # Tokens that may still be generated.
}

struct Withdrawn {
  # Queue -> scheduler: not waiting any more (cancelled, expired, replaced). Also the answer to a Dispatch of
  # what the queue no longer has.

  request @0 :UInt64;
  # As in Submit.

  model @1 :Text;
  # Whose backlog it was in.
}

struct Dispatch {
  # Scheduler -> queue: hand the request to this worker now. Answered by nothing, or by Withdrawn.

  request @0 :UInt64;
  # As in Submit.

  attempt @1 :UInt32 = 1;
  # As in Enqueued.

  worker @2 :Text;
  # The instance that was chosen.

  estimatedMicros @3 :Int64;
  # Predicted prefill time, returned in PrefillFinished.

  decodeOn @4 :List(Text);
  # Workers to hand the run over to after its prompt, the best first.
}

struct CannotBeOnTime {
  # Scheduler -> queue: no instance can meet the deadline. The queue refuses, or requeues in a lower class.

  request @0 :UInt64;
  # As in Submit.

  attempt @1 :UInt32 = 1;
  # As in Enqueued.

  earliestInMillis @2 :Int64;
  # When the first token could have been there.
}

struct Run {
  # Queue -> worker, once per attempt. Answered by TokensProduced to `tokensTo`, PrefillFinished to the scheduler
  # and exactly one RunEnded to both queue and scheduler. Loss: the worker is reported lost.

  request @0 :UInt64;
  # As in Submit.

  attempt @1 :UInt32 = 1;
  # As in Submit. A newer one replaces the older.

  model @2 :Text;
  # Which of the worker's models.

  tenant @3 :Text;
  # Salts the prefix cache; may be empty.

  serviceClass @4 :ServiceClass = normal;
  # Decides who is preempted when pages run out.

  prompt @5 :List(UInt32);
  # Token ids, begin token included.

  generated @6 :List(UInt32);
  # Tokens from earlier attempts; generation goes on after them.

  sampling @7 :Sampling;
  # How tokens are chosen.

  tokensTo @8 :Text;
  # The gateway that holds the client.

  estimatedMicros @9 :Int64;
  # As in Dispatch.

  decodeOn @10 :List(Text);
  # As in Dispatch.
}

struct TokensProduced {
  # Worker -> gateway, in order, one per request and step that produced something. The one with a finish is the
  # last. A stop token ends the stream and is not among `tokens`. Loss: the worker is reported lost.

  request @0 :UInt64;
  # As in Submit.

  attempt @1 :UInt32 = 1;
  # As in Run.

  first @2 :UInt64;
  # Index of tokens[0] among all generated tokens of the request.

  tokens @3 :List(UInt32);
  # May be empty in the last one.

  logprobs @4 :List(PositionLogprobs);
  # As long as `tokens`, or empty.

  finish @5 :FinishReason;
  # None while the stream goes on.

  cached @6 :Int64;
  # Prompt tokens that the prefix cache held.

  code @7 :ErrorCode;
  # With finish `failed`.

  why @8 :Text;
  # With finish `failed`: for the client.
}

struct KvPlace {
  # Where the keys and values of a run lie in the pool of the worker that computed them, and what must be the same
  # elsewhere for a copy to mean the same.

  kvName @0 :Text;
  # Of weights and configuration.

  isa @1 :Text;
  # Of the kernels: others compute other last bits.

  page @2 :Int64;
  # Bytes of one page.

  layers @3 :Int64;
  # How a page is divided, as the following three.

  kvHeads @4 :Int64;
  # In each layer.

  headDim @5 :Int64;
  # 16-bit floats.

  tokensPerPage @6 :Int64;
  # Positions.

  pages @7 :List(UInt32);
  # Of the worker's pool, in the order of positions.

  digest @8 :Text;
  # Hex. Of the keys and values of all positions: of each page in turn, for each layer and head, the keys and then the
  # values of its positions are hashed; the digest is the hash of these pages' hashes.
}

struct ReserveKv {
  # Worker -> worker of the same host, when a prompt is let in and before anything of it is computed: set pages aside
  # for it, and copy what becomes final while it does. Answered by KvReserved, but for `tokens` 0, which takes it back.
  # What is set aside is free again when its time is up without progress. Loss: one of the two is reported lost to the
  # other; HandOver needs no reservation.

  request @0 :UInt64;
  # As in Run.

  attempt @1 :UInt32 = 1;
  # As in Run.

  model @2 :Text;
  # As in Run.

  tokens @3 :Int64;
  # Whose keys and values will come; 0: none any more.

  from @4 :Text;
  # Whose pool.

  incarnation @5 :UInt64;
  # Of `from`.

  kv @6 :KvPlace;
  # Of all these tokens; without a digest.

  progressPage @7 :UInt32;
  # The page of the pool of `from` in which it is said how much is final: one 64-bit word in the host's byte order. From
  # its low end: 24 bits, tokens that are final in all layers; 24 bits, tokens of the chunk behind them; 16 bits, layers
  # in which these are final, too. It is stored with release and read with acquire order.

  progressOffset @8 :Int64;
  # Where in that page, in bytes; a multiple of 64.
}

struct KvReserved {
  # Worker -> worker, exactly one per ReserveKv that asks for pages. Loss: the worker is reported lost.

  request @0 :UInt64;
  # As in Run.

  attempt @1 :UInt32 = 1;
  # As in Run.

  worker @2 :Text;
  # Who says so.

  code @3 :ErrorCode;
  # None: the pages are set aside. Otherwise nothing has happened there.

  why @4 :Text;
  # With a code.
}

struct HandOver {
  # Worker -> worker of the same host, when a prompt is computed: go on with its run. All or nothing. Answered by
  # HandOverEnded, until when the pages stay as they are. Loss: one of the two is reported lost to the other.

  run @0 :Run;
  # With all tokens so far as `generated`; the last one has no keys and values yet.

  said @1 :TokensProduced;
  # What the gateway has been told last; who takes the run repeats it.

  from @2 :Text;
  # Whose pool.

  incarnation @3 :UInt64;
  # Of `from`.

  kv @4 :KvPlace;
  # Of all tokens but the last.
}

struct HandOverEnded {
  # Worker -> worker, exactly one per HandOver. Loss: the worker is reported lost.

  request @0 :UInt64;
  # As in Run.

  attempt @1 :UInt32 = 1;
  # As in Run.

  worker @2 :Text;
  # Who says so.

  code @3 :ErrorCode;
  # None: the run is this worker's now. Otherwise nothing has happened there.

  why @4 :Text;
  # With a code.
}

struct RunMoved {
  # Worker that has taken a run over -> queue and scheduler, once, before all else that it says of the run. The queue
  # tells the gateway (Started), and passes it on to `from`, which has answered for the run until then; one that has no
  # such run answers with Cancel. Loss: the worker is reported lost.

  request @0 :UInt64;
  # As in Run.

  attempt @1 :UInt32 = 1;
  # As in Run.

  model @2 :Text;
  # As in Run.

  from @3 :Text;
  # Who had it.

  to @4 :Text;
  # Who has it.
}

struct PrefillFinished {
  # Worker -> scheduler, when a prefill ends, also in failure; at most one per attempt, before its RunEnded.

  request @0 :UInt64;
  # As in Run.

  attempt @1 :UInt32 = 1;
  # As in Run.

  worker @2 :Text;
  # Who says so.

  model @3 :Text;
  # Whose cost model learns from it.

  estimatedMicros @4 :Int64;
  # What the scheduler had assumed.

  measuredMicros @5 :Int64;
  # From Run to the end of the prefill.

  computed @6 :Int64;
  # Tokens, without those found in the prefix cache.
}

struct RunEnded {
  # Worker -> queue and scheduler: exactly one per Run, whatever happened.

  request @0 :UInt64;
  # As in Run.

  attempt @1 :UInt32 = 1;
  # As in Run.

  worker @2 :Text;
  # Who says so.

  model @3 :Text;
  # As in Run.

  finish @4 :FinishReason;
  # Why it ended.

  produced @5 :Int64;
  # Tokens generated in this attempt.
}

# ---- Who is there ------------------------------------------------------------------------------------------

struct InstanceReady {
  # Worker -> scheduler and gateways: this worker serves the model from now on. Repeated when the hearer
  # appears anew.

  worker @0 :Text;
  # The worker's actor.

  model @1 :Text;
  # What it serves.

  incarnation @2 :UInt64;
  # Of the worker.

  runningMax @3 :Int64 = 1;
  # Sequences that may run at once, over all models of the worker.

  kvCapacity @4 :Int64;
  # Tokens of this model that the worker's pages could hold.

  prefillTokensPerSecond @5 :Float64;
  # Measured at load; the prior of the cost model.

  weightsDigest @6 :Text;
  # Hex; names the bytes that serve.

  role @7 :WorkerRole;
  # What the worker is for.
}

struct InstanceGone {
  # Worker -> scheduler and gateways: the worker serves the model no longer, or could not load it.

  worker @0 :Text;
  # The worker's actor.

  model @1 :Text;
  # What it served.

  incarnation @2 :UInt64;
  # Of the worker.

  why @3 :Text;
  # For logs and for clients whose model is away.
}

struct InstanceStatus {
  # Worker -> gateways, twice a second and when a count falls to zero; for metrics. Loss is harmless.

  worker @0 :Text;
  # The worker's actor.

  model @1 :Text;
  # Which of its models.

  running @2 :Int64;
  # Sequences in the current step.

  waiting @3 :Int64;
  # Handed over, not yet in a step.

  kvUsed @4 :Int64;
  # Pages of the pool that this model holds.

  kvTotal @5 :Int64;
  # Pages of the worker's pool.

  preemptions @6 :UInt64;
  # Since the worker's start, as the following counts.

  prefixQueries @7 :UInt64;
  # Tokens looked up in the prefix cache.

  prefixHits @8 :UInt64;
  # Tokens found there.

  steps @9 :UInt64;
  # Steps of the engine.

  selfDecodes @10 :UInt64;
  # Runs that another worker should have gone on with, and none did.
}

struct QueueStatus {
  # Queue -> gateways and oracle, twice a second and when a count falls to zero. Loss is harmless.

  model @0 :Text;
  # Whose queue.

  waiting @1 :Int64;
  # Requests not yet with a worker.

  running @2 :Int64;
  # Requests with a worker.

  waitingTokens @3 :Int64;
  # Prompt and already generated tokens of what waits.

  refused @4 :UInt64;
  # Since the queue's start, as the following count.

  expired @5 :UInt64;
  # Dropped unexecuted.

  sequence @6 :UInt64;
  # Counts the letters of this kind; one that is not above the last is late.

  arrived @7 :UInt64;
  # Requests admitted, first attempts only, since the queue's start as all that follows.

  inputTokens @8 :UInt64;
  # Of their prompts.

  inputTokensSquared @9 :Float64;
  # The sum of the squares of their lengths.

  ended @10 :UInt64;
  # Requests whose last run has ended.

  outputTokens @11 :UInt64;
  # Theirs.

  outputTokensSquared @12 :Float64;
  # The sum of the squares of their lengths.
}

struct ActorFound {
  # The mesh -> every local actor: an actor can be reached, for the first time or under a new incarnation. Made
  # from ActorOpened by the node that hears it.

  actor @0 :Text;
  # Its name.

  incarnation @1 :UInt64;
  # Rises with every start under this name.
}

struct ActorLost {
  # The mesh -> every local actor: an actor is gone, and so is all that was on the way to it.

  actor @0 :Text;
  # Its name.

  incarnation @1 :UInt64;
  # Which one is gone.

  why @2 :Text;
  # For logs.
}

enum WorkerRole {
  # What a worker is for.

  mixed @0;    # Whole runs.
  prefill @1;  # Prompts, whose runs others go on with.
  decode @2;   # Going on with such runs.
}

# ---- Models that come and go -------------------------------------------------------------------------------

enum Residency {
  # How near a model is to serving on a worker.

  cold @0;    # On storage only.
  warm @1;    # A copy lies in host memory.
  active @2;  # On the device.
}

enum AtDeadline {
  # What becomes of live requests when a drain's time is up.

  stay @0;     # The model stays active and the order fails.
  cancel @1;   # They end as cancelled.
  migrate @2;  # They go on elsewhere, with the same bits.
}

enum CommandVerb {
  # What an operator can ask for.

  load @0;    # Make warm.
  wake @1;    # Make active.
  sleep @2;   # Make warm.
  unload @3;  # Make cold.
  drain @4;   # Make warm, and end what lives when the time is up.
  fork @5;    # Make active with the weights of another worker.
}

struct InstanceState {
  # Worker -> lifecycle, placement, autoscaler and gateways: what it holds of one of its models. At each change, when
  # runs begin after there were none or the last one ends (lifecycle only), and when the hearer appears anew. The
  # latest is the whole truth.

  worker @0 :Text;
  # The worker's actor.

  model @1 :Text;
  # Which of its models.

  incarnation @2 :UInt64;
  # Of the worker.

  residency @3 :Residency;
  # Now.

  target @4 :Residency;
  # Where an order is taking it; at rest the same.

  live @5 :Int64;
  # Runs taken and not ended.

  weights @6 :Int64;
  # Bytes of all its tensors; 0 as long as they have not been read.

  missing @7 :Int64;
  # Device bytes that making it active would add.

  own @8 :Int64;
  # Device bytes that its going would free.

  host @9 :Int64;
  # Bytes of its copy in host memory.

  code @10 :ErrorCode;
  # Of the last attempt to load it; none after a good one.

  why @11 :Text;
  # In words.

  pinned @12 :Bool;
  # By the last order that said so, until one has it leave.
}

struct Order {
  # Lifecycle -> worker: bring the model to `target`. Answered by exactly one OrderEnded, also when repeated.
  # Loss: the lifecycle sees it from InstanceState and orders again.

  operation @0 :UInt64;
  # Names the order for its giver; one that comes twice acts once.

  epoch @1 :UInt64;
  # Of the lifecycle. A worker refuses an older one than it has seen.

  incarnation @2 :UInt64;
  # Of the worker that is meant; another one refuses.

  model @3 :Text;
  # One of the worker's.

  target @4 :Residency = active;
  # Where to.

  sources @5 :List(Text);
  # Workers to copy weights from, where they can be reached; then storage.

  mayEvict @6 :List(Text);
  # Idle models that may become warm to make room, in this order.

  drainForMillis @7 :Int64;
  # How long live requests may take to end.

  atDeadline @8 :AtDeadline;
  # What becomes of those that have not.

  idleAtLeastMillis @9 :Int64;
  # Fails when the model's last token is more recent.

  pin @10 :Bool;
  # To be remembered, for a lifecycle that comes anew. An order to leave ends it.

  role @11 :WorkerRole;
  # What the instance is for, on a worker whose own role is mixed.
}

struct Phase {
  # One part of an order's work.

  name @0 :Text;
  # open, ask, read, reserve, copy, fork, keep, ready.

  tookMicros @1 :Int64;
  # Its duration.

  moved @2 :Int64;
  # Bytes.
}

struct OrderEnded {
  # Worker -> lifecycle: how an order ended; once per order, again when the order is repeated.

  operation @0 :UInt64;
  # As in Order.

  worker @1 :Text;
  # Who says so.

  model @2 :Text;
  # As in Order.

  incarnation @3 :UInt64;
  # Of the worker.

  residency @4 :Residency;
  # Now.

  code @5 :ErrorCode;
  # None where the target was reached.

  why @6 :Text;
  # Which limit, which numbers, what to do.

  phases @7 :List(Phase);
  # Of the work that was done, in order.

  evicted @8 :List(Text);
  # Models that became warm to make room.
}

struct Wanted {
  # Scheduler -> lifecycle: requests wait for a model that is active nowhere. Repeated every second while that is
  # so; with 0 when it is no longer. Loss is harmless.

  model @0 :Text;
  # Which.

  waiting @1 :Int64;
  # How many.
}

struct Unservable {
  # Lifecycle -> queue: the model cannot be had at present. What waits for it is refused, and what comes until the
  # time has passed. Loss: the lifecycle says it again when the model is wanted again.

  model @0 :Text;
  # Which.

  code @1 :ErrorCode = unavailable;
  # As in Refused.

  why @2 :Text;
  # As in Refused.

  retryAfterMillis @3 :Int64;
  # When it may be tried again.
}

struct Command {
  # Gateway -> lifecycle, on an operator's behalf. Answered by exactly one CommandEnded. Loss: the lifecycle is
  # reported lost, and the operator is told.

  command @0 :UInt64;
  # Unique for the gateway's incarnation.

  verb @1 :CommandVerb = wake;
  # What to do.

  models @2 :List(Text);
  # Empty: every model.

  workers @3 :List(Text);
  # Empty: where it is best (load, wake, fork), or wherever it is.

  sources @4 :List(Text);
  # Of fork: whose weights; empty: wherever the model is active.

  drainForMillis @5 :Int64;
  # As in Order.

  atDeadline @6 :AtDeadline;
  # As in Order.

  pin @7 :Bool;
  # Load and wake: keep it there, whatever else wants room. Sleep and unload end this.

  answerTo @8 :Text;
  # The gateway that holds the operator.
}

struct CommandEnded {
  # Lifecycle -> gateway: what became of a command.

  command @0 :UInt64;
  # As in Command.

  code @1 :ErrorCode;
  # Of the first order that failed, or why there was none.

  why @2 :Text;
  # In words.

  orders @3 :List(OrderEnded);
  # Each order's end.
}

struct ModelKv {
  # Keys and values that lie in a pool for one model, in bytes.

  model @0 :Text;
  # Whose.

  kv @1 :Int64;
  # Pages of its live requests.

  cached @2 :Int64;
  # Pages that would give way.
}

struct WorkerMemory {
  # Worker -> gateways, lifecycle and placement: its memory in bytes, when that has changed, at most twice a second. Loss is
  # harmless.

  worker @0 :Text;
  # Whose.

  pool @1 :Int64;
  # The device's pool, and what it is used for:

  weights @2 :Int64;
  # Pages of distinct segments.

  kv @3 :Int64;
  # Pages of live requests.

  cached @4 :Int64;
  # Pages that would give way: prefix cache and spare pages.

  free @5 :Int64;
  # Pages of nobody.

  shared @6 :Int64;
  # What the tables of all models name, less what their distinct segments hold.

  host @7 :Int64;
  # Copies in host memory.

  hostMax @8 :Int64;
  # Their budget.

  models @9 :List(ModelKv);
  # The parts of `kv` and `cached`, of models that have any.
}

# ---- Control loops -----------------------------------------------------------------------------------------

struct ModelLoad {
  # What one model does on one worker.

  model @0 :Text;
  # One of the worker's.

  waiting @1 :Int64;
  # Runs taken and not yet in a step.

  running @2 :Int64;
  # Runs in steps.

  kvUsed @3 :Int64;
  # Pages.

  kvReserved @4 :Int64;
  # Pages, for runs that are on their way here.

  prefillTokens @5 :UInt64;
  # Computed since the worker's start, as the following counts.

  outputTokens @6 :UInt64;
  # Produced.

  decodeSteps @7 :UInt64;
  # Steps that had a decode of this model.

  contextTokens @8 :UInt64;
  # Read by attention: the sum of the contexts of all decoded tokens.

  prefillTimeMicros @9 :Int64;
  # Of steps, by share of rows.

  decodeTimeMicros @10 :Int64;
  # The rest of them.
}

struct Telemetry {
  # Worker -> oracle, placement, autoscaler and gateways, twice a second. Counts run since the worker's start, so a
  # lost letter loses none.

  worker @0 :Text;
  # Who speaks.

  incarnation @1 :UInt64;
  # With another one all counts begin anew.

  sequence @2 :UInt64;
  # One that is not above the last is late and dropped.

  upMicros @3 :Int64;
  # Since the start; the times below are parts of it.

  busyMicros @4 :Int64;
  # In steps.

  steps @5 :UInt64;
  # Of the engine.

  longestStepMicros @6 :Int64;
  # Since the letter before.

  prefillAheadMicros @7 :Int64;
  # Predicted time until the prefills taken so far are done (EPDT).

  compute @8 :Float64;
  # Share of the time since the letter before in prefills, or of the measured peak FLOP/s where that is more.

  bandwidth @9 :Float64;
  # Share of its measured read bandwidth.

  pages @10 :Int64;
  # Of the pool.

  pagesUsed @11 :Int64;
  # By weights and live KV.

  transfers @12 :Int64;
  # Orders under way.

  moved @13 :Int64;
  # Bytes, by orders, since the start.

  devices @14 :Int64 = 1;
  # The tensor-parallel class: how many devices the worker is.

  models @15 :List(ModelLoad);
  # Those that are active.
}

struct ServedRequest {
  # What a client got.

  model @0 :Text;
  # As in Submit.

  input @1 :Int64;
  # Tokens of the prompt.

  output @2 :Int64;
  # Tokens of the answer.

  ttftMicros @3 :Int64;
  # From arrival to the first token.

  tpotMicros @4 :Int64;
  # Mean over the tokens after the first; 0 with one token.

  ttftSloMillis @5 :Int64;
  # 0: none.

  tpotSloMillis @6 :Int64;
  # 0: none.

  late @7 :Int64;
  # Tokens after their time: token i is due ttftSlo + (i - 1) tpotSlo after arrival.

  code @8 :ErrorCode;
  # Of a request that failed or was refused; all its tokens are late.
}

struct Served {
  # Gateway -> oracle, twice a second: what has ended since the letter before. Loss costs samples.

  gateway @0 :Text;
  # Who speaks.

  requests @1 :List(ServedRequest);
  # In the order of their ends.
}

struct SegmentSize {
  # A weight tensor's bytes.

  digest @0 :UInt64;
  # First 8 bytes of the content hash.

  bytes @1 :Int64;
  # Its length.
}

struct ModelTable {
  # Worker -> placement, oracle and gateways, when it has read a model, and again when they appear anew.

  model @0 :Text;
  # Which.

  devices @1 :Int64 = 1;
  # As in Telemetry: the workers that can hold it.

  kvPerToken @2 :Int64;
  # Bytes.

  segments @3 :List(SegmentSize);
  # Distinct ones.
}

struct ClientTraffic {
  # What a model's clients ask for, over the window that the oracle believes.

  requestsPerSecond @0 :Float64;
  # That arrive.

  inputMean @1 :Float64;
  # Tokens of a prompt.

  inputDeviation @2 :Float64;
  # Standard deviation of these.

  outputMean @3 :Float64;
  # Tokens of an answer.

  outputDeviation @4 :Float64;
  # Standard deviation of these.

  ttftSloMillis @5 :Int64;
  # Median of the latest requests; 0: none.

  tpotSloMillis @6 :Int64;
  # As ttftSlo, for the time between tokens.
}

struct ModelCosts {
  # What a worker takes for a model, as learned; microseconds.

  step @0 :Float64;
  # A step, beside what is in it.

  prompt @1 :Float64;
  # A prompt, beside its steps and tokens.

  promptToken @2 :Float64;
  # A token of it.

  sequence @3 :Float64;
  # A token that is made.

  contextToken @4 :Float64;
  # A token that attention reads for one that is made.

  settled @5 :Bool;
  # Whether enough was measured; before, they are what the oracle began with.
}

struct ModelForecast {
  # What a model needs and what more workers would give it. Shares are of one worker of the model's class.

  model @0 :Text;
  # Which.

  requestsPerSecond @1 :Float64;
  # In the short window, as the next.

  inputTokensPerSecond @2 :Float64;
  # Of prompts.

  volatility @3 :Float64;
  # Peak over mean of the token rate; 1 for a constant one.

  kv @4 :Int64;
  # Bytes of KV that are needed at a time.

  kvDeviation @5 :Int64;
  # Standard deviation of that prediction, as the following.

  compute @6 :Float64;
  # Share of a worker's FLOP/s.

  computeDeviation @7 :Float64;
  # Of compute.

  bandwidth @8 :Float64;
  # Share of a worker's read bandwidth.

  bandwidthDeviation @9 :Float64;
  # Of bandwidth.

  prefillAttainment @10 :List(Float64);
  # Lower bound of the on-time share of first tokens with 1, 2 ... workers that only prefill.

  decodeAttainment @11 :List(Float64);
  # Of later tokens, with workers that only decode.

  mixedAttainment @12 :List(Float64);
  # Of the worse of both, with workers that do everything.

  traffic @13 :ClientTraffic;
  # What its clients ask for.

  costs @14 :ModelCosts;
  # What a worker takes for it.
}

struct Forecast {
  # Oracle -> placement, autoscaler, gateways, twice a second. Loss is harmless.

  models @0 :List(ModelForecast);
  # All that the oracle knows.
}

struct PlannedInstance {
  # One model on one worker.

  model @0 :Text;
  # Which.

  worker @1 :Text;
  # Where.

  role @2 :WorkerRole;
  # What for.

  sources @3 :List(Text);
  # Workers to copy the weights from, the cheapest first.

  step @4 :Int64;
  # Instances of a step are brought up when those of all earlier ones are there.
}

struct Plan {
  # Placement or autoscaler -> lifecycle and each other: what shall be active of `models` anywhere, and on
  # `workers` at all. What is there beyond it leaves, when its model is up elsewhere or its room is needed.
  # Loss: repeated with the next period.

  by @0 :Text;
  # Who planned.

  epoch @1 :UInt64;
  # An older one than the last of the same planner is ignored.

  models @2 :List(Text);
  # Which this planner answers for.

  workers @3 :List(Text);
  # Which are its own.

  instances @4 :List(PlannedInstance);
  # All that shall be.
}

struct AskQuote {
  # Gateway -> scheduler: when would the first token of such a request be there? Nothing is queued. Answered by
  # Quoted with attempt 0. Loss: the gateway gives up after a while.

  request @0 :UInt64;
  # The gateway's name for the question.

  model @1 :Text;
  # As in Enqueued, and so are the following.

  serviceClass @2 :ServiceClass = normal;
  # In what order overload is felt.

  prefillTokens @3 :Int64;
  # Of the prompt.

  outputMax @4 :Int64;
  # Tokens that may be generated.

  ttftInMillis @5 :Int64;
  # When it is due.

  answerTo @6 :Text;
  # The gateway.
}

struct Quoted {
  # Scheduler -> queue -> gateway at admission, and scheduler -> gateway in answer to AskQuote. Loss: no quote.

  request @0 :UInt64;
  # As in Enqueued or AskQuote.

  attempt @1 :UInt32;
  # Of the request; 0 in answer to AskQuote.

  earliestMillis @2 :Int64;
  # The first token comes within [earliest, latest] nine times in ten.

  latestMillis @3 :Int64;
  # Counted from this sending, as the earliest. 0: too little has been seen for an interval.

  code @4 :ErrorCode;
  # Why it would be refused.

  feasibleInMillis @5 :Int64;
  # With a code: when one could start that is on time; 0: unknown.
}
