import type { AttemptState } from '../../contracts/records.ts';

/** What a state of an attempt means. */
interface StateOfLife {
  /** It occupies a slot: it was launched, and nobody knows of its end. */
  readonly isLive: boolean;
  /** A worker has it, as far as is known. */
  readonly isWorking: boolean;
  /** States that its record may go to; none follows an end. */
  readonly next: readonly AttemptState[];
}

/** The life of an attempt, as its record tells it: the one table of its states. */
export const attemptLife: Readonly<Record<AttemptState, StateOfLife>> = {
  launched: { isLive: true, isWorking: false, next: ['running', 'lost'] },
  running: { isLive: true, isWorking: true, next: ['done', 'failed', 'cancelled', 'lost'] },
  done: { isLive: false, isWorking: false, next: [] },
  failed: { isLive: false, isWorking: false, next: [] },
  cancelled: { isLive: false, isWorking: false, next: [] },
  lost: { isLive: false, isWorking: false, next: [] },
};

/** Whether an attempt occupies a slot. */
export const isLive = ({ state }: { readonly state: AttemptState }): boolean => attemptLife[state].isLive;

/** Whether a worker has an attempt. */
export const isWorking = ({ state }: { readonly state: AttemptState }): boolean =>
  attemptLife[state].isWorking;
