import { decisionsOf } from '../../contracts/decision-log.ts';
import { OutriderError, UnreadableRecordError } from '../../contracts/errors.ts';
import type { JobId } from '../../contracts/ids.ts';
import type { PolicyName } from '../../contracts/policy-names.ts';
import type { EpochMs } from '../../contracts/units.ts';
import { createRng, type Rng } from '../../lib/rng.ts';
import { applyDecisions, decideTick, type TickDecision } from '../decide-tick.ts';
import { createJobState, openStage } from '../model/job-state.ts';
import type { JobState } from '../model/job-view.ts';
import { applyObservation, type Observation } from '../model/observation.ts';
import type { TickBudget, TickConfig } from '../model/tick-config.ts';
import { policySets } from '../policy/policy-sets.ts';
import {
  decodeBudget,
  type EncodedBudget,
  type EndLine,
  type EntryLine,
  type JournalLine,
  type SessionLine,
  type TickLine,
} from './journal-lines.ts';
import { parseLine } from './parse-line.ts';

/** A tick that came to something else than it is recorded to have: JSON of both, as the decision log has it. */
export interface TickDifference {
  readonly epoch: number;
  /** Of its scheduler, from 1. */
  readonly tick: number;
  readonly at: EpochMs;
  readonly recorded: string;
  readonly computed: string;
}

/** What one scheduler has written, gone through again. */
export interface ReplayedSession {
  readonly epoch: number;
  readonly policy: string;
  /** Its first and last tick; absent where it came to none. */
  readonly from?: EpochMs;
  readonly to?: EpochMs;
  readonly ticks: number;
  /** Ticks that came to the very same bytes again. */
  readonly reproduced: number;
  /** Decisions of those ticks, by the recorded log. */
  readonly decisions: number;
  /** How its journal ends: it left in order, there was too much, or it was lost or is not there yet (`cut`). */
  readonly end: EndLine['why'] | 'cut';
}

/** What going through a journal has come to. */
export interface ReplayReport {
  readonly jobId: JobId;
  readonly sessions: readonly ReplayedSession[];
  readonly ticks: number;
  readonly reproduced: number;
  readonly decisions: number;
  readonly firstDifference?: TickDifference;
  /** Entries of the decision log of which no scheduler's journal tells how they came about, by their versions. */
  readonly unseen: readonly number[];
}

/** A tick as it is gone through again, before its decisions take effect. */
export interface ReplayedTick {
  readonly epoch: number;
  readonly tick: number;
  readonly state: JobState;
  readonly at: EpochMs;
  readonly config: TickConfig;
  readonly budget: TickBudget;
  readonly rng: Rng;
  readonly decided: TickDecision;
}

/** One scheduler's state on the way. */
interface Session {
  readonly head: SessionLine;
  readonly config: TickConfig;
  readonly state: JobState;
  readonly rng: Rng;
  budget: EncodedBudget | undefined;
  from?: EpochMs;
  to?: EpochMs;
  ticks: number;
  reproduced: number;
  decisions: number;
  end: EndLine['why'] | 'cut';
}

/** JSON of what a tick has decided and refused, as the decision log has it; `[]` where that was nothing to be logged. */
function textOf({ decisions, refusals, outcome }: TickDecision): string {
  const decided = decisions.length === 0 ? '[]' : JSON.stringify([...decisions, ...refusals]);
  return outcome.kind === 'continue' ? decided : `${decided} ${JSON.stringify(outcome)}`;
}

const recordedText = ({ decided = '[]', outcome }: TickLine): string =>
  outcome === undefined ? decided : `${decided} ${JSON.stringify(outcome)}`;

/**
 * Goes through a job's journal: takes over what each of its schedulers has learned, in that order, decides each tick
 * again by the same rules, and compares. The recorded decisions take effect whatever it comes to, so that a tick that
 * differs says nothing of those after it. Pure: the journal is all that it knows.
 */
export class JournalReplay {
  private readonly sessions: Session[] = [];
  private readonly onTick: (tick: ReplayedTick) => void;
  private first: TickDifference | undefined;
  private readonly decided = new Set<number>();
  private readonly followed = new Set<number>();
  private lineNumber = 0;

  constructor(onTick: (tick: ReplayedTick) => void = () => undefined) {
    this.onTick = onTick;
  }

  /**
   * Takes a line. Throws `UnreadableRecordError` that says which line is spoilt, or of another version of Outrider.
   */
  take(text: string): void {
    this.lineNumber += 1;
    try {
      this.go(parseLine(text));
    } catch (cause) {
      // A line that has the outer shape of one, and another inside, comes to any error.
      const why = cause instanceof Error ? cause.message : String(cause);
      const details = cause instanceof OutriderError ? cause.details : {};
      throw new UnreadableRecordError(
        `line ${String(this.lineNumber)} of the journal cannot be followed: ${why}`,
        details,
        { cause },
      );
    }
  }

  report(): ReplayReport {
    const [first] = this.sessions;
    if (first === undefined) throw new UnreadableRecordError('the journal has no lines');
    const sum = (of: (session: Session) => number): number =>
      this.sessions.reduce((total, each) => total + of(each), 0);
    return {
      jobId: first.head.jobId,
      sessions: this.sessions.map(told),
      ticks: sum(({ ticks }) => ticks),
      reproduced: sum(({ reproduced }) => reproduced),
      decisions: sum(({ decisions }) => decisions),
      ...(this.first === undefined ? {} : { firstDifference: this.first }),
      unseen: [...this.followed].filter((version) => !this.decided.has(version)).toSorted((a, b) => a - b),
    };
  }

  private go(line: JournalLine): void {
    if (line.kind === 'session') {
      this.sessions.push(begin(line));
      return;
    }
    const session = this.sessions.at(-1);
    if (session === undefined) throw new UnreadableRecordError('it is of no scheduler');
    switch (line.kind) {
      case 'entry':
        this.followed.add(line.version);
        apply(session, line);
        return;
      case 'fence':
        this.decided.add(line.version);
        return;
      case 'tick':
        this.tick(session, line);
        return;
      case 'end':
        session.end = line.why;
        return;
      default:
        applyObservation(session.state, line satisfies Observation);
    }
  }

  private tick(session: Session, line: TickLine): void {
    const { state, config, rng, head } = session;
    const { at } = line;
    session.budget = line.budget ?? session.budget;
    if (session.budget === undefined)
      throw new UnreadableRecordError('it does not say what its tick might use');
    const budget = decodeBudget(session.budget, state);
    const decided = decideTick(state, at, config, budget, rng);
    session.ticks += 1;
    session.from ??= at;
    session.to = at;
    const [recorded, computed] = [recordedText(line), textOf(decided)];
    if (recorded === computed) session.reproduced += 1;
    else this.first ??= { epoch: head.epoch, tick: session.ticks, at, recorded, computed };
    this.onTick({ ...{ epoch: head.epoch, tick: session.ticks }, state, at, config, budget, rng, decided });
    if (line.version === undefined || line.decided === undefined) return;
    this.decided.add(line.version);
    session.decisions += apply(session, { ...line, version: line.version, decided: line.decided });
  }
}

function begin(head: SessionLine): Session {
  const { policy, ...times } = head.config;
  const name = [...policySets.keys()].find((each) => each === policy);
  if (name === undefined) throw new UnreadableRecordError(`there is no policy ${policy} here`);
  return {
    head,
    config: { ...times, policy: name satisfies PolicyName },
    state: createJobState(head.shapes, head.launchOrder),
    rng: createRng(head.jobId),
    budget: undefined,
    ticks: 0,
    reproduced: 0,
    decisions: 0,
    end: 'cut',
  };
}

/** Takes logged decisions over, as whoever takes a job over does; answers how many they are. */
function apply(
  { head: { jobId, epoch }, state }: Session,
  { version, at, decided, opened = [] }: Pick<EntryLine, 'version' | 'at' | 'decided' | 'opened'>,
): number {
  const entry = { version, epoch, at, decisions: JSON.parse(decided) as readonly unknown[] };
  const decisions = decisionsOf(jobId, entry, version - 1);
  const bytes = new Map(opened);
  applyDecisions(state, decisions, {
    now: at,
    openStage: (stage) => {
      openStage(state, stage, bytes.get(stage) ?? [], at);
    },
  });
  return decisions.length;
}

const told = ({ head, config, from, to, ticks, reproduced, decisions, end }: Session): ReplayedSession => ({
  epoch: head.epoch,
  policy: config.policy as string,
  ...(from === undefined ? {} : { from }),
  ...(to === undefined ? {} : { to }),
  ...{ ticks, reproduced, decisions, end },
});
