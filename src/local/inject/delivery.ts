import type { AttemptId } from '../../contracts/ids.ts';
import { attemptPayloadSchema } from '../../contracts/payloads.ts';
import type { Rng } from '../../lib/rng.ts';
import type { Injection } from './injection.ts';

/** What may become of an asynchronous event that was accepted: it reaches nobody, or it is delivered twice. */
export type DeliveryFault = 'lose' | 'repeat';

/** Says what becomes of an asynchronous event by its payload, in JSON; undefined: it is delivered once. */
export type DeliveryHook = (payload: Buffer) => DeliveryFault | undefined;

/** Launches that are left alone between two that are struck: few, so that small jobs lose something too. */
const mostSpared = 2;

/** Loses some launches of attempts once Lambda has accepted them, and delivers others twice, as an injection says. */
export class DeliveryFaults {
  private readonly injection: Pick<Injection, 'lostInvocations' | 'duplicateInvocations'>;
  private readonly rng: Rng;
  /** The attempts that were to run first in them. */
  readonly lost: AttemptId[] = [];
  readonly repeated: AttemptId[] = [];
  private spared: number;

  constructor(injection: Pick<Injection, 'lostInvocations' | 'duplicateInvocations'>, rng: Rng) {
    this.injection = injection;
    this.rng = rng;
    this.spared = this.drawSpared();
  }

  /** What becomes of an event; only launches of attempts are struck. */
  faultOf(payload: Buffer): DeliveryFault | undefined {
    const losses = this.injection.lostInvocations - this.lost.length;
    const repeats = this.injection.duplicateInvocations - this.repeated.length;
    if (losses + repeats === 0) return undefined;
    const attemptId = attemptOf(payload);
    if (attemptId === undefined || this.spared-- > 0) return undefined;
    this.spared = this.drawSpared();
    const isLost = this.rng.next() * (losses + repeats) < losses;
    (isLost ? this.lost : this.repeated).push(attemptId);
    return isLost ? 'lose' : 'repeat';
  }

  private drawSpared(): number {
    return Math.floor(this.rng.next() * (mostSpared + 1));
  }
}

/** The attempt that a payload launches; undefined of one that launches none. */
function attemptOf(payload: Buffer): AttemptId | undefined {
  const parsed = attemptPayloadSchema.safeParse(JSON.parse(payload.toString('utf8')));
  return parsed.success ? parsed.data.attemptId : undefined;
}
