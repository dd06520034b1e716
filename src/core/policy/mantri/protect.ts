import { taskIdOf } from '../../../contracts/ids.ts';
import type { CopyOutput, Facts, Refusal, RefusalReason } from '../../model/decision.ts';
import { stageAt } from '../../model/job-state.ts';
import type { JobState, TaskView } from '../../model/job-view.ts';
import type { OutputAtRisk } from './outputs-at-risk.ts';
import { choosePrecomputed } from './precompute.ts';
import { chooseReplicas, lossCostMs } from './replicate.ts';

/** What there is to choose from, and what it may cost. */
export interface ProtectionTerms {
  /** Outputs that are to be judged, worth a copy or not. */
  readonly outputs: readonly OutputAtRisk[];
  /** Bytes that may be copied for their worth still. */
  readonly tokens: number;
  /** Outputs at locations in a spell of losses, and the time that copying those may take still. */
  readonly inSpell: readonly OutputAtRisk[];
  readonly spellLeftMs: number;
  /** Copies that are decided on at once; others are judged again. */
  readonly most: number;
}

export interface ProtectionChoice {
  readonly copies: readonly CopyOutput[];
  /** Outputs that are worth a copy and get none now: judged again when there are more tokens. */
  readonly waiting: readonly TaskView[];
  readonly declined: readonly { readonly output: OutputAtRisk; readonly refusal: Refusal }[];
}

const round = (value: number): number => Number(value.toPrecision(4));

const factsOf = ({ lossProbability, redoMs, copyMs, bytes }: OutputAtRisk): Facts => ({
  lossProbability: round(lossProbability),
  redoMs: Math.round(redoMs),
  lossCostMs: round(lossCostMs({ lossProbability, redoMs })),
  copyMs: Math.round(copyMs),
  bytes,
});

/**
 * Which outputs are copied: those beside lost ones first, as far as the time lasts that a spell may cost, since what can be
 * read still is copied sooner than it is made again; then those that are worth it, within the tokens.
 *
 * Source: Mantri §5.3. Differs: the paper makes again what it expects to be lost, since it cannot read it from a machine
 * in trouble; what is gone already is found by whoever copies it, and made again at once.
 */
export function protect(state: JobState, terms: ProtectionTerms): ProtectionChoice {
  const { tokens, inSpell, spellLeftMs, most } = terms;
  const ahead = choosePrecomputed(
    inSpell.map((output) => ({ output, redoMs: output.redoMs, takesMs: output.copyMs })),
    spellLeftMs,
  );
  const first = ahead.chosen.map(({ output }) => output).slice(0, most);
  const taken = new Set(first.map(({ task }) => task));
  const outputs = terms.outputs.filter(({ task }) => !taken.has(task));
  const { chosen, declined } = chooseReplicas(outputs, tokens);
  const then = chosen.slice(0, most - first.length);
  let left = tokens;
  const copyOf = (output: OutputAtRisk, reason: CopyOutput['reason'], facts: Facts): CopyOutput[] => {
    const { result } = output.task;
    if (result === undefined) return [];
    const told = { ...factsOf(output), ...facts };
    return [{ kind: 'copy-output', attemptId: result.attemptId, bytes: output.bytes, reason, facts: told }];
  };
  const refusalOf = (output: OutputAtRisk, reason: RefusalReason, facts: Facts): Refusal => ({
    kind: 'refuse',
    taskId: taskIdOf(stageAt(state, output.task.stage).shape.name, 0),
    reason,
    facts: { ...factsOf(output), ...facts },
  });
  return {
    copies: [
      ...first.flatMap((output) => copyOf(output, 'spell', { spellLeftMs: Math.round(spellLeftMs) })),
      ...then.flatMap((output) => {
        const copy = copyOf(output, 'worth', { tokens: left });
        left -= output.bytes;
        return copy;
      }),
    ],
    waiting: [
      ...ahead.chosen.slice(first.length).map(({ output }) => output),
      ...chosen.slice(then.length),
      ...declined.flatMap(({ candidate, reason }) => (reason === 'too-few-tokens' ? [candidate] : [])),
    ].map(({ task }) => task),
    declined: [
      ...declined.map(({ candidate: output, reason, tokens: had }) => ({
        output,
        refusal: refusalOf(output, reason === 'too-few-tokens' ? reason : 'replica-not-worth-it', {
          tokens: had,
        }),
      })),
      ...ahead.declined.map(({ candidate: { output }, reason, leftMs }) => ({
        output,
        refusal: refusalOf(output, reason, { spellLeftMs: Math.round(leftMs) }),
      })),
    ],
  };
}
