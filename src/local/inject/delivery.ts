import type { AttemptId } from '../../contracts/ids.ts';
import { attemptPayloadSchema } from '../../contracts/payloads.ts';
import type { Rng } from '../../lib/rng.ts';
import type { Injection } from './injection.ts';
import { Strikes } from './strikes.ts';

/** What may become of an asynchronous event that was accepted: it reaches nobody, or it is delivered twice. */
export type DeliveryFault = 'lose' | 'repeat';

/** Says what becomes of an asynchronous event by its payload, in JSON; undefined: it is delivered once. */
export type DeliveryHook = (payload: Buffer) => DeliveryFault | undefined;

/** Loses some launches of attempts once Lambda has accepted them, and delivers others twice, as an injection says. */
export class DeliveryFaults {
  private readonly strikes: Strikes<DeliveryFault>;
  /** The attempts that were to run first in them. */
  readonly lost: AttemptId[] = [];
  readonly repeated: AttemptId[] = [];

  constructor(injection: Pick<Injection, 'lostInvocations' | 'duplicateInvocations'>, rng: Rng) {
    const { lostInvocations: lose, duplicateInvocations: repeat } = injection;
    this.strikes = new Strikes(rng, ['lose', 'repeat'], { lose, repeat });
  }

  /** What becomes of an event; only launches of attempts are struck. */
  faultOf(payload: Buffer): DeliveryFault | undefined {
    const attemptId = this.strikes.isOver ? undefined : attemptOf(payload);
    if (attemptId === undefined) return undefined;
    const fault = this.strikes.next();
    if (fault !== undefined) (fault === 'lose' ? this.lost : this.repeated).push(attemptId);
    return fault;
  }
}

/** The attempt that a payload launches; undefined of one that launches none. */
function attemptOf(payload: Buffer): AttemptId | undefined {
  const parsed = attemptPayloadSchema.safeParse(JSON.parse(payload.toString('utf8')));
  return parsed.success ? parsed.data.attemptId : undefined;
}
