import { InvalidInputError } from '../../contracts/errors.ts';
import { zoneIdOfName } from '../provision/zone-ids.ts';

/** What is to go wrong on an embedded stack. */
export interface Injection {
  /** The first `nodes` processes that take work run `factor` times slower. */
  readonly slow: { readonly factor: number; readonly nodes: number } | undefined;
  /** So many processes are killed while they work. */
  readonly kills: number;
  /** So many processes are ended while they work, as if they took more memory than they have. */
  readonly memoryHogs: number;
  /** So many tasks of Fargate lose their place while they work, with a notice, as on Spot. */
  readonly interruptions: number;
  /** Share of the launch requests that are refused, in [0, 1). */
  readonly throttle: number;
  /** So many objects that workers have written for each other are removed once they are written. */
  readonly lostObjects: number;
  /** So many of them get a bit flipped. */
  readonly corruptObjects: number;
  /** So many launches that Lambda has accepted reach no worker. */
  readonly lostInvocations: number;
  /** So many of them reach two. */
  readonly duplicateInvocations: number;
  /** The storage of this zone is lost, so many seconds after the first work of a worker; absent: of none. */
  readonly lostZone?: { readonly zone: string; readonly afterMs: number };
  /** This share of the reads of objects, in (0, 1), is answered so much later; absent: none. */
  readonly slowReads?: Delayed;
  /** This share of the starts of Lambda environments of workers, in (0, 1), takes so much longer; absent: none. */
  readonly coldStarts?: Delayed;
  /** This share of the works, in (0, 1), stands still for so long at some point of it, and goes on; absent: none. */
  readonly pauses?: Delayed;
  /** The clocks of this share of the workers, in (0, 1), are off by so much, ahead or behind; absent: none. */
  readonly skews?: Skewed;
  /** Requests to the storage of this zone take `factor` times as long; absent: of none. */
  readonly slowZone?: { readonly zone: string; readonly factor: number };
  /** Tasks of Fargate in this zone run `factor` times slower, all of them; absent: in none. */
  readonly slowTaskZone?: { readonly zone: string; readonly factor: number };
  /** Same seed, same draws; which process meets which draw is for the machine to say. */
  readonly seed: number;
}

/** Which share of a kind of events is late, in (0, 1), and how much. */
export interface Delayed {
  readonly share: number;
  readonly delayMs: number;
}

/** Which share of a kind of clocks is off, in (0, 1), and by how much. */
export interface Skewed {
  readonly share: number;
  readonly offMs: number;
}

/** What has gone wrong so far. */
export interface InjectedCounts {
  /** Processes that run, or ran, slower. */
  readonly slow: number;
  readonly killed: number;
  /** Processes that were ended for want of memory. */
  readonly memoryHogs: number;
  /** Tasks that lost their place with a notice. */
  readonly interrupted: number;
  /** Launch requests that were refused. */
  readonly throttled: number;
  /** Reads of objects that were answered late. */
  readonly slowReads: number;
  /** Starts of environments that took longer. */
  readonly coldStarts: number;
  /** Works that stood still. */
  readonly paused: number;
  /** Workers whose clocks are off. */
  readonly skewed: number;
  /** Objects that were removed, and that were changed. */
  readonly lostObjects: number;
  readonly corruptObjects: number;
  /** Launches that Lambda has accepted, and delivered to nobody, and twice. */
  readonly lostInvocations: number;
  readonly duplicateInvocations: number;
  /** The zones whose storage was lost, and that whose storage is slow; absent: none. */
  readonly lostZone?: string;
  readonly slowZone?: string;
  /** The zone whose tasks are slow; absent: none. */
  readonly slowTaskZone?: string;
  /** The id by which logs and explanations tell of that zone. */
  readonly slowTaskZoneId?: string;
  /** Which they were, in the order in which it befell them: what the nodes of attempts end with. */
  readonly places: {
    readonly slow: readonly string[];
    readonly killed: readonly string[];
    readonly memoryHogs: readonly string[];
    readonly interrupted: readonly string[];
    readonly coldStarts: readonly string[];
    /** A place as often as works there stood still. */
    readonly paused: readonly string[];
    /** Those whose clocks are ahead, and those behind. */
    readonly ahead: readonly string[];
    readonly behind: readonly string[];
  };
  /** Of which attempts those launches were, in the same order; of several in one launch the first. */
  readonly attempts: {
    readonly lostInvocations: readonly string[];
    readonly duplicateInvocations: readonly string[];
  };
}

const mostNodes = 256;
const mostKills = 1_000;
const mostObjects = 1_000;
const mostInvocations = 1_000;
/** Beyond it the stops would be as long as heartbeats, and a slow worker be taken for a lost one. */
const highestFactor = 50;
const mostReadSeconds = 60;
/** Well below the time after which a launch that nobody has claimed is given up on one machine. */
const mostStartSeconds = 10;
const mostPauseSeconds = 60;
const mostSkewSeconds = 86_400;
const mostZoneSeconds = 3_600;
const highestShare = 0.95;
const highestSeed = 4_294_967_295;
const defaultSeed = 1;

const names = [
  'slow',
  'kill',
  'memory-hog',
  'spot',
  'throttle',
  'slow-read',
  'cold-start',
  'pause',
  'skew',
  'lose-object',
  'corrupt-object',
  'lose-invocation',
  'duplicate-invocation',
  'lose-zone',
  'slow-zone',
  'seed',
] as const;
type Name = (typeof names)[number];
type DelayName = 'slow-read' | 'cold-start' | 'pause' | 'skew';
type CountName = Exclude<Name, DelayName | 'slow' | 'throttle' | 'lose-zone' | 'slow-zone' | 'seed'>;
const usage =
  'slow=FACTORxNODES, kill=N, memory-hog=N, spot=N, throttle=SHARE, slow-read=SHARE@SECONDS, cold-start=SHARE@SECONDS, pause=SHARE@SECONDS, skew=SHARE@SECONDS, lose-object=N, corrupt-object=N, lose-invocation=N, duplicate-invocation=N, lose-zone=ZONE@SECONDS, slow-zone=ZONE@FACTOR';

/**
 * Reads `slow=8x2,kill=1,throttle=0.2,lose-object=1,corrupt-object=1,lose-zone=use1-az2@3,slow-zone=use1-az1@5,seed=7`: any of them, in any order, each once, and not the seed alone.
 *
 * @throws InvalidInputError with one line that says what is wrong and what would be right.
 */
export function parseInjection(text: string): Injection {
  const given = new Map<Name, string>();
  for (const part of text.split(',')) {
    const [, key = '', value = ''] = /^\s*([a-z-]+)\s*=\s*(.*?)\s*$/.exec(part) ?? [];
    const name = names.find((known) => known === key);
    if (name === undefined) {
      throw wrong(part, `must be one of ${usage} and seed=N`);
    }
    if (given.has(name)) throw wrong(part, `is given twice: ${name} may stand there once`);
    given.set(name, value);
  }
  if (given.size === 1 && given.has('seed')) {
    throw wrong(text, `injects nothing: add one of ${usage}`);
  }
  const countOf = (name: CountName, most: number): number =>
    parseCount(name, given.get(name), { least: 1, most, otherwise: 0 });
  return {
    slow: parseSlow(given.get('slow')),
    kills: countOf('kill', mostKills),
    memoryHogs: countOf('memory-hog', mostKills),
    interruptions: countOf('spot', mostKills),
    throttle: parseThrottle(given.get('throttle')),
    lostObjects: countOf('lose-object', mostObjects),
    corruptObjects: countOf('corrupt-object', mostObjects),
    lostInvocations: countOf('lose-invocation', mostInvocations),
    duplicateInvocations: countOf('duplicate-invocation', mostInvocations),
    ...parseDelays(given),
    ...parseZones(given),
    seed: parseCount('seed', given.get('seed'), { least: 0, most: highestSeed, otherwise: defaultSeed }),
  };
}

const wrong = (part: string, why: string): InvalidInputError =>
  new InvalidInputError(`"${part.trim()}" ${why}`);

function parseSlow(value: string | undefined): Injection['slow'] {
  if (value === undefined) return undefined;
  const [, factorText, nodesText] = /^(\d{1,3}(?:\.\d{1,6})?)x(\d{1,4})$/.exec(value) ?? [];
  const factor = Number(factorText ?? Number.NaN);
  const nodes = Number(nodesText ?? Number.NaN);
  if (!(factor > 1 && factor <= highestFactor && nodes >= 1 && nodes <= mostNodes)) {
    throw wrong(
      `slow=${value}`,
      `must be FACTORxNODES, a factor above 1 and at most ${highestFactor} and 1 to ${mostNodes} nodes, such as slow=8x2`,
    );
  }
  return { factor, nodes };
}

/** Zones by their ids and by their names. What is slow there follows: storage by an id, tasks of Fargate by a name. */
const zoneId = /^[a-z0-9-]+-az\d+$/;
const zoneName = /^[a-z]{2}(?:-[a-z]+)+-\d[a-z]$/;

/** A zone and a number behind it; undefined where that is not so. */
function atZone(
  value: string,
  ...forms: readonly RegExp[]
): { readonly zone: string; readonly amount: number } | undefined {
  const [, zone = '', amount = ''] = /^([a-z0-9-]+)@(\d{1,4}(?:\.\d{1,3})?)$/.exec(value) ?? [];
  return forms.some((form) => form.test(zone)) ? { zone, amount: Number(amount) } : undefined;
}

function parseZones(
  given: ReadonlyMap<Name, string>,
): Pick<Injection, 'lostZone' | 'slowZone' | 'slowTaskZone'> {
  const [lose, slow] = [given.get('lose-zone'), given.get('slow-zone')];
  const lost = lose === undefined ? undefined : atZone(lose, zoneId, zoneName);
  const slowed = slow === undefined ? undefined : atZone(slow, zoneId, zoneName);
  if (lose !== undefined && (lost === undefined || lost.amount > mostZoneSeconds))
    throw wrong(
      `lose-zone=${lose}`,
      `must be ZONE@SECONDS, the id or the name of a zone and at most ${mostZoneSeconds} seconds, such as lose-zone=use1-az2@3`,
    );
  if (slow !== undefined && (slowed === undefined || slowed.amount <= 1 || slowed.amount > highestFactor))
    throw wrong(
      `slow-zone=${slow}`,
      `must be ZONE@FACTOR, the id of a zone for its storage or its name for its tasks on Fargate, and a factor above 1 and at most ${highestFactor}, such as slow-zone=use1-az1@5 or slow-zone=us-east-1a@5`,
    );
  return {
    ...(lost === undefined
      ? {}
      : { lostZone: { zone: zoneIdOfName(lost.zone) ?? lost.zone, afterMs: lost.amount * 1_000 } }),
    ...(slowed === undefined
      ? {}
      : {
          [zoneId.test(slowed.zone) ? 'slowZone' : 'slowTaskZone']: {
            zone: slowed.zone,
            factor: slowed.amount,
          },
        }),
  };
}

function parseThrottle(value: string | undefined): number {
  if (value === undefined) return 0;
  const share = /^\d?(?:\.\d{1,9})?$/.test(value) ? Number.parseFloat(value) : Number.NaN;
  if (!(share > 0 && share <= highestShare)) {
    throw wrong(
      `throttle=${value}`,
      `must be a share of the launches, above 0 and at most ${highestShare}, such as throttle=0.2`,
    );
  }
  return share;
}

function parseDelays(
  given: ReadonlyMap<Name, string>,
): Pick<Injection, 'slowReads' | 'coldStarts' | 'pauses' | 'skews'> {
  const slowReads = parseDelayed('slow-read', given, { of: 'reads', mostSeconds: mostReadSeconds });
  const coldStarts = parseDelayed('cold-start', given, { of: 'starts', mostSeconds: mostStartSeconds });
  const pauses = parseDelayed('pause', given, { of: 'works', mostSeconds: mostPauseSeconds });
  const skew = parseDelayed('skew', given, { of: 'workers', mostSeconds: mostSkewSeconds });
  return {
    ...(slowReads === undefined ? {} : { slowReads }),
    ...(coldStarts === undefined ? {} : { coldStarts }),
    ...(pauses === undefined ? {} : { pauses }),
    ...(skew === undefined ? {} : { skews: { share: skew.share, offMs: skew.delayMs } }),
  };
}

function parseDelayed(
  name: DelayName,
  given: ReadonlyMap<Name, string>,
  { of, mostSeconds }: { readonly of: string; readonly mostSeconds: number },
): Delayed | undefined {
  const value = given.get(name);
  if (value === undefined) return undefined;
  const [, share, seconds] = /^(0?\.\d{1,9})@(\d{1,5}(?:\.\d{1,3})?)$/.exec(value) ?? [];
  const late = { share: Number(share), delayMs: Number(seconds) * 1_000 };
  const isRight = late.share > 0 && late.share <= highestShare && late.delayMs > 0;
  if (!isRight || late.delayMs > mostSeconds * 1_000)
    throw wrong(
      `${name}=${value}`,
      `must be SHARE@SECONDS, a share of the ${of} above 0 and at most ${highestShare} and at most ${mostSeconds} seconds, such as ${name}=0.1@5`,
    );
  return late;
}

function parseCount(
  name: CountName | 'seed',
  value: string | undefined,
  { least, most, otherwise }: { readonly least: number; readonly most: number; readonly otherwise: number },
): number {
  if (value === undefined) return otherwise;
  const count = /^\d{1,10}$/.test(value) ? Number(value) : Number.NaN;
  if (!(count >= least && count <= most)) {
    throw wrong(`${name}=${value}`, `must be a whole number from ${least} to ${most}`);
  }
  return count;
}

/** With as many decimals as one may have: JavaScript writes small numbers as 1e-9. */
const shareText = (share: number): string =>
  share < 1e-6 ? share.toFixed(9).replace(/0+$/, '') : String(share);

/** The same injection in its own notation, with its seed. */
export function describeInjection(injection: Injection): string {
  const { slow, throttle, slowReads, coldStarts, pauses, skews, lostZone, seed } = injection;
  const slowZone = injection.slowZone ?? injection.slowTaskZone;
  const counted = (name: CountName, count: number): readonly string[] =>
    count === 0 ? [] : [`${name}=${count}`];
  const delayed = (name: DelayName, late: Delayed | undefined): readonly string[] =>
    late === undefined ? [] : [`${name}=${shareText(late.share)}@${late.delayMs / 1_000}`];
  return [
    ...(slow === undefined ? [] : [`slow=${slow.factor}x${slow.nodes}`]),
    ...counted('kill', injection.kills),
    ...counted('memory-hog', injection.memoryHogs),
    ...counted('spot', injection.interruptions),
    ...(throttle === 0 ? [] : [`throttle=${shareText(throttle)}`]),
    ...delayed('slow-read', slowReads),
    ...delayed('cold-start', coldStarts),
    ...delayed('pause', pauses),
    ...(skews === undefined ? [] : [`skew=${shareText(skews.share)}@${skews.offMs / 1_000}`]),
    ...counted('lose-object', injection.lostObjects),
    ...counted('corrupt-object', injection.corruptObjects),
    ...counted('lose-invocation', injection.lostInvocations),
    ...counted('duplicate-invocation', injection.duplicateInvocations),
    ...(lostZone === undefined ? [] : [`lose-zone=${lostZone.zone}@${lostZone.afterMs / 1_000}`]),
    ...(slowZone === undefined ? [] : [`slow-zone=${slowZone.zone}@${slowZone.factor}`]),
    `seed=${seed}`,
  ].join(',');
}
