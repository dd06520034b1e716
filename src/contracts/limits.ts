const dayMs = 24 * 3_600_000;
const maxDeadlineMs = 7 * dayMs;
/** A day more than the longest deadline: late jobs go on, and end in order. */
const longestExecutionMs = maxDeadlineMs + dayMs;
/** A day more: for a beginning that was late, and an ending that had to be tried again and again. */
const longestJobMs = longestExecutionMs + dayMs;

/** Every limit of a job, in one place; refusals quote these numbers. */
export const limits = {
  /** Stages in a job. */
  stages: 20,
  /** Inputs of one stage. */
  inputsPerStage: 8,
  /** Tasks in one stage. */
  tasksPerStage: 10_000,
  /** Partitions of a stage's output. */
  partitions: 1_000,
  /** Partitions of a shuffle where the spec says nothing. */
  defaultPartitions: 8,
  /** Producer tasks times partitions on one all-to-all edge. */
  shuffleSegments: 1_000_000,
  /** Keys of the store over which the tasks of one job are spread, and how many share one where there are enough. */
  shards: 1_000,
  tasksPerShard: 16,
  /** Inboxes of one job, and the notes that wait in one: what finds no room is seen when the attempt is next read. */
  inboxes: 100,
  notesPerInbox: 400,
  /** Output parts that a job's record names; the list of more of them is in the output's manifest alone. */
  partsInRecord: 32,
  /** Bytes of a part of the output that goes with its task's result; a larger one is an upload. */
  inlinePartBytes: 4 * 1024,
  /** The note with which an attempt hands on what it has done: its partitions' index, counters, and its operator's state. */
  savedNoteBytes: 4 * 1024 * 1024,
  /** Objects that the inputs of one job may match. */
  inputObjects: 100_000,
  /** Objects that one task reads at most: of small ones each costs a request, whatever its bytes. */
  objectsPerTask: 256,
  /** Attempts of one task that failed or were lost before the job fails. */
  attemptsPerTask: 4,
  /** Times that the output of one task may be lost before the job fails. */
  lossesPerTask: 4,
  /** Outputs that one attempt reports as lost, and objects that a look for others asks for at most. */
  lostPerReport: 16,
  /** A worker that keeps outputs which nobody has asked for so long puts them into the data bucket, and ends. */
  keptIdleMs: 10 * 60_000,
  lossProbes: 2_000,
  /** Times that one part may be noted as gone: beyond that nobody has made it again, and Finish goes back no more. */
  notesPerPart: 10,
  /** Bytes of reported ranges that one look reads again to see whether they are damaged; of more readers are believed. */
  lossCheckBytes: 64 * 1024 * 1024,
  /** A job fails of whose launches no worker takes up any for so long: what Lambda keeps events. */
  nothingBeginsMs: 6 * 3_600_000,
  /** Launches of one task that are given up unclaimed before their lease has run out. */
  renewedLaunchesPerTask: 3,
  /** Attempts that one worker takes up after the first of its launch. */
  ridersPerLaunch: 31,
  /** Tasks that one RunTask may start: ECS's own limit. */
  launchesPerCall: 10,
  /** Names under which one task may count (`takesName`), characters of such a name, and the largest sum either way. */
  countersPerTask: 100,
  counterNameChars: 100,
  counterSum: Number.MAX_SAFE_INTEGER,
  /** Names of counters that a job keeps, over all its tasks. */
  countersPerJob: 1_000,
  /** Characters of the one line that says why an attempt failed, and of the name of its node or zone. */
  failureChars: 1_000,
  nodeChars: 512,
  /** Bytes of one line or record. */
  recordBytes: 64 * 1024 * 1024,
  /** Bytes of an object's key, and of the prefix of an output, below which its parts have theirs. */
  keyBytes: 1_024,
  outputKeyBytes: 1_000,
  /** Bytes of a spec's JSON. */
  specBytes: 200_000,
  /** Shortest and longest deadline. */
  minDeadlineMs: 1_000,
  maxDeadlineMs,
  /** Longest life of a job's execution: the time-out of the state machine. */
  longestExecutionMs,
  /** Longest time from a job's submission to its end. Nothing of a job may be dropped by its age before that. */
  longestJobMs,
  /** Age at which storage drops by itself what a job left behind: data under `jobs/`, uploads, logs. */
  leftoversKeptMs: longestJobMs + dayMs,
  /** How far back it is looked for jobs whose end nobody has told: the longest job, and two days without a look. */
  sweepHorizonMs: longestJobMs + 2 * dayMs,
  /** How long the records of a job are kept. */
  recordsKeptMs: 30 * dayMs,
  /** Slots of its own that a job may ask for, and its weight where slots are shared. */
  guaranteedSlots: 1_000_000,
  leastWeight: 0.01,
  weight: 1_000,
  /** Dollars of a budget. */
  maxBudgetDollars: 1_000_000,
  /** Bytes of a request's body, which holds a spec and little else, and levels of JSON in it. */
  bodyBytes: 1_000_000,
  jsonDepth: 64,
  /**
   * Bytes of an answer of the API: Lambda gives at most 6 MB, in which the answer is a text in JSON, so that each of its
   * quotes takes two.
   */
  answerBytes: 5_500_000,
  /** Attempts and jobs in one page of a list. */
  attemptsPerPage: 10_000,
  jobsPerPage: 100,
  /** Files that travel with a stage of `exec`, characters of the path of one, and bytes of one and of all together. */
  filesPerStage: 256,
  filePathChars: 512,
  fileBytes: 64 * 1024 * 1024,
  filesBytes: 256 * 1024 * 1024,
  /** Fields of one record of CSV. */
  recordFields: 100_000,
  /** Levels of JSON in one record of NDJSON. */
  recordDepth: 1_000,
  /** Unfinished jobs whose outputs lie in one bucket, beside those in their default places. */
  claimsPerBucket: 1_000,
  /** Bytes of a pattern of `grep`, and states of the automaton that its repeats written out make. */
  patternBytes: 10_000,
  patternStates: 10_000,
  /** Steps to match one line with back references: so many, and as many more for each byte of the line. */
  matchSteps: 2_000_000,
  matchStepsPerByte: 100,
  /** Jobs that one resident takes on, and those that it takes on at most where others have waited for long. */
  jobsPerResident: 16,
  mostJobsPerResident: 64,
  /** Tasks in one stage that are as much work as all those jobs together. */
  tasksPerResident: 4_000,
  /** Silence after which the state machine takes a job's resident for dead, in seconds. */
  taskHeartbeatSeconds: 30,
  /** Of what was learned of a recurring job: samples of a stage's times, runs apart, ids of jobs, and rows of C(p, a). */
  profileSamples: 128,
  profileRuns: 8,
  profileJobs: 20,
  forecastSlots: 40,
  forecastStages: 200,
  /** Of what a job has asked for on its way, what is told of it. */
  allocationsTold: 2_000,
  /** Points of what a job with a deadline bids for slots of its own. */
  bidPoints: 12,
  /** Tasks of a job of which a scheduler tells the log why something proposed was refused. */
  refusalsTold: 2_000,
  /**
   * Nodes to be avoided that one launch names, how often the attempts of a task are declined by such, and how long one
   * that has declined keeps itself busy, so that it is not handed the same again.
   */
  avoidedNodes: 32,
  declinesPerTask: 2,
  declineHoldMs: 5_000,
  /**
   * Of what a scheduler writes down of its ticks: characters of one piece, which is stored deflated, pieces of one
   * scheduler, and characters that wait for their turn.
   */
  journalPieceChars: 192 * 1024,
  journalPieces: 500,
  journalWaitingChars: 16 * 1024 * 1024,
  /** Decisions that one tick commits. */
  decisionsPerTick: 500,
  /** Source bytes per task where the spec says nothing, and the bounds of what it may say. */
  defaultSplitBytes: 32 * 1024 * 1024,
  minSplitBytes: 1,
  maxSplitBytes: 4 * 1024 * 1024 * 1024,
} as const;
