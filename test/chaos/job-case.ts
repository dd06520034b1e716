import type { Draw } from './draw.ts';
import { countedChain, graph, program, userCode } from './program-workloads.ts';
import { groupby, join } from './row-workloads.ts';
import { grep, grepCount, sortLines, wordcount } from './text-workloads.ts';
import { drawTerms, type Terms, type Workload } from './workload.ts';

/** What a process of the stack is there for. */
export const roles = ['worker', 'schedule', 'plan', 'finish', 'fail', 'api'] as const;
export type Role = (typeof roles)[number];

/** A process that dies, or freezes for a while, some time after a job was submitted. */
export interface Strike {
  readonly how: 'kill' | 'freeze';
  readonly role: Role;
  readonly afterMs: number;
  /** Of a freeze. */
  readonly forMs: number;
}

/** Steps of a job's execution, as the state machine names them. */
export type Step = 'Plan' | 'Schedule' | 'Finish' | 'Fail';

/** Where a process stops for a while in the middle of a write, while its step is done again by another. */
export interface Snag {
  readonly place: 'plan' | 'publish' | 'decide' | 'commit' | 'end' | 'record';
  /** Matching requests that pass before. */
  readonly skip: number;
  readonly at: 'before' | 'after';
  readonly forMs: number;
  /** Invoked meanwhile, as the state machine does where an answer is lost or late. */
  readonly repeat?: Step;
}

/** Something of somebody else's in the output bucket. */
export interface Foreign {
  readonly what: 'object' | 'upload';
  /** Relative to the output prefix without its slash: `/part-00000` is in it, `-old/part-00000` beside it. */
  readonly name: string;
  /** Undefined: there before the job is submitted. */
  readonly afterMs?: number;
}

/** What a user does with the job. */
export type Story =
  | { readonly kind: 'run' }
  | { readonly kind: 'cancel'; readonly afterMs: number }
  /** The execution is aborted in the console. */
  | { readonly kind: 'abort'; readonly afterMs: number }
  /** Submitted several times at once under one client token. */
  | { readonly kind: 'submit-twice' }
  /** Another job wants a prefix that overlaps with this one's: the same, one above, or one below. */
  | { readonly kind: 'race'; readonly other: '' | '..' | 'below/' };

/** Everything that is drawn for one job of a campaign. */
export interface JobCase {
  readonly index: number;
  /** `SEED/INDEX`: draws the same again. */
  readonly seed: string;
  readonly workload: Workload;
  readonly terms: Terms;
  /** Whether the output goes to a bucket of its own, and not to that of the stack's data. */
  readonly isApart: boolean;
  readonly story: Story;
  readonly strikes: readonly Strike[];
  readonly snags: readonly Snag[];
  readonly foreign: readonly Foreign[];
}

function drawWorkload(draw: Draw): Workload {
  return draw.weighted<() => Workload>([
    [3, () => wordcount(draw)],
    [3, () => sortLines(draw)],
    [2, () => grep(draw)],
    [2, () => grepCount(draw)],
    [2, () => groupby(draw)],
    [2, () => join(draw, false)],
    [1, () => join(draw, true)],
    [3, () => program(draw)],
    [4, () => graph(draw)],
    [2, () => countedChain(draw)],
    [2, () => userCode(draw, false)],
    [1, () => userCode(draw, true)],
  ])();
}

function drawStory(draw: Draw): Story {
  return draw.weighted<Story>([
    [12, { kind: 'run' }],
    [2, { kind: 'cancel', afterMs: draw.int(0, 3_000) }],
    [1, { kind: 'abort', afterMs: draw.int(200, 3_000) }],
    [2, { kind: 'submit-twice' }],
    [3, { kind: 'race', other: draw.pick(['', '..', 'below/'] as const) }],
  ]);
}

function drawStrike(draw: Draw): Strike {
  const role = draw.weighted<Role>([
    [5, 'worker'],
    [4, 'schedule'],
    [1, 'plan'],
    [2, 'finish'],
    [1, 'fail'],
    [1, 'api'],
  ]);
  return {
    how: draw.pick(['kill', 'freeze'] as const),
    role,
    afterMs: draw.int(0, 3_000),
    forMs: draw.int(1_800, 5_000),
  };
}

function drawSnag(draw: Draw): Snag {
  const place = draw.pick(['plan', 'publish', 'decide', 'commit', 'end', 'record'] as const);
  // What a state machine may do again while the process that is held goes on with it later.
  const repeats = {
    plan: ['Plan'],
    publish: ['Finish', 'Fail', 'Fail'],
    decide: ['Schedule'],
    commit: [],
    end: ['Finish', 'Fail'],
    record: ['Plan', 'Schedule'],
  } as const;
  const most = { plan: 3, publish: 1, decide: 8, commit: 3, end: 0, record: 60 }[place];
  const repeat = draw.chance(0.8) && repeats[place].length > 0 ? draw.pick<Step>(repeats[place]) : undefined;
  return {
    place,
    skip: draw.int(0, most),
    at: draw.pick(['before', 'after'] as const),
    forMs: draw.int(1_800, 4_000),
    ...(repeat === undefined ? {} : { repeat }),
  };
}

/** Most are beside the prefix or are uploads, which harm no job; some take a place that a part needs. */
function drawForeign(draw: Draw): Foreign {
  const beside = ['', '-old/part-00000', '-old/_SUCCESS', '-old/data', '.txt', '0/part-00001'];
  const inside = [
    '/part-00000',
    '/part-00001',
    '/part-00099',
    '/_SUCCESS',
    '/notes.txt',
    '/below/part-00000',
  ];
  const afterMs = draw.int(0, 2_500);
  return draw.weighted<Foreign>([
    [5, { what: 'object', name: draw.pick(beside) }],
    [2, { what: 'object', name: draw.pick(beside), afterMs }],
    [5, { what: 'upload', name: draw.pick([...beside, ...inside]) }],
    [4, { what: 'upload', name: draw.pick([...beside, ...inside]), afterMs }],
    [1, { what: 'object', name: draw.pick(inside) }],
    [2, { what: 'object', name: draw.pick(inside), afterMs }],
  ]);
}

/** The job number `index` of a campaign: the same seed, the same job and the same mischief. */
export function drawJob(campaign: Draw, index: number): JobCase {
  const draw = campaign.fork(String(index));
  const few = (make: (from: Draw) => Strike, most: number): Strike[] =>
    draw.times(draw.int(0, most), (number) => make(draw.fork(`strike-${String(number)}`)));
  return {
    index,
    seed: draw.name,
    workload: drawWorkload(draw.fork('workload')),
    terms: drawTerms(draw.fork('terms')),
    isApart: draw.chance(0.5),
    story: drawStory(draw.fork('story')),
    strikes: few(drawStrike, 3),
    snags: draw.times(draw.int(0, 2), (number) => drawSnag(draw.fork(`snag-${String(number)}`))),
    foreign: draw.times(draw.int(0, 4), (number) => drawForeign(draw.fork(`foreign-${String(number)}`))),
  };
}
