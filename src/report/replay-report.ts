import type { OtherDecision, PolicyComparison } from '../core/replay/compare-policy.ts';
import type { ReplayedSession, ReplayReport } from '../core/replay/replay-journal.ts';
import type { SimulatedOutcome } from '../experiments/recorded-job.ts';
import { formatCount, formatDuration, oneLine, plural } from './format.ts';
import type { Style } from './style.ts';

const timeOf = (at: number): string => new Date(at).toISOString().replace('T', ' ');

const endings: Readonly<Record<ReplayedSession['end'], string>> = {
  left: '',
  cut: '; what it wrote after that is lost, or not written yet',
  'too-long': '; it had too much to write, and stopped there',
};

function sessionLine({ epoch, from, to, ticks, reproduced, policy, end }: ReplayedSession): string {
  if (from === undefined || to === undefined) return `scheduler ${epoch}: no tick${endings[end]}`;
  const count =
    ticks === reproduced ? formatCount(ticks) : `${formatCount(reproduced)} of ${formatCount(ticks)}`;
  return `scheduler ${epoch}: ${count} ticks under ${policy}, from ${timeOf(from)} to ${timeOf(to)}${endings[end]}`;
}

/** Entries of a log in as few words as they take: 3, 5-7. */
function ranges(versions: readonly number[]): string {
  const spans: { from: number; to: number }[] = [];
  for (const version of versions) {
    const last = spans.at(-1);
    if (last?.to === version - 1) last.to = version;
    else spans.push({ from: version, to: version });
  }
  return spans.map(({ from, to }) => (from === to ? `${from}` : `${from}-${to}`)).join(', ');
}

/** What going through a job again has come to, for people. */
export function renderReplay(report: ReplayReport, style: Style): readonly string[] {
  const { jobId, ticks, reproduced, decisions, sessions, firstDifference: first, unseen } = report;
  const isAlike = reproduced === ticks;
  const count = `${formatCount(reproduced)} of ${plural(ticks, 'tick')} reproduced`;
  return [
    `${style.heading(jobId)}: ${isAlike ? style.good(count) : style.bad(count)}, byte for byte, with ${plural(decisions, 'decision')}`,
    ...sessions.map(sessionLine),
    ...(unseen.length === 0
      ? []
      : [
          `not gone through: ${unseen.length === 1 ? 'entry' : 'entries'} ${ranges(unseen)} of the decision log, whose inputs were lost with their scheduler`,
        ]),
    ...(first === undefined
      ? []
      : [
          '',
          `first difference: scheduler ${first.epoch}, tick ${formatCount(first.tick)}, at ${timeOf(first.at)}`,
          `  recorded ${oneLine(first.recorded)}`,
          `  again    ${oneLine(first.computed)}`,
        ]),
  ];
}

/** So many decisions of a kind are shown; `--json` has all. */
const mostShown = 20;

function decisionLines(what: string, decisions: readonly OtherDecision[]): string[] {
  if (decisions.length === 0) return [`${what}: nothing`];
  const lines = decisions
    .slice(0, mostShown)
    .map(
      ({ at, tick, kind, attemptId, reason }) =>
        `  ${timeOf(at)}  tick ${formatCount(tick)}  ${kind} ${attemptId} (${reason})`,
    );
  const left = decisions.length - lines.length;
  return [`${what}:`, ...lines, ...(left === 0 ? [] : [`  and ${formatCount(left)} more`])];
}

const simulatedLine = ({ policy, completionS, slotSeconds, copies }: SimulatedOutcome): string =>
  `  ${policy}: ends after ${formatDuration(completionS * 1_000)}, ${formatDuration(slotSeconds * 1_000)} of slots, ${copies.toFixed(1)} copies`;

/** What another policy would have done, for people, and what that rests on. */
export function renderOtherPolicy(
  {
    policy,
    ticks,
    differing,
    first,
    would,
    wouldNot,
    simulated,
  }: PolicyComparison & { readonly simulated: readonly SimulatedOutcome[] },
  style: Style,
): readonly string[] {
  const head = style.heading(policy);
  return [
    first === undefined
      ? `${head} would have launched and ended the same at all ${plural(ticks, 'tick')}`
      : `${head} would have decided otherwise at ${formatCount(differing)} of ${plural(ticks, 'tick')}, first at tick ${formatCount(first.tick)} of scheduler ${first.epoch}, at ${timeOf(first.at)}`,
    ...(first === undefined ? [] : decisionLines('it would have done, of what was known then', would)),
    ...(first === undefined ? [] : decisionLines('it would not have done', wouldNot)),
    'The job went on as it did: nothing follows here from what the other would have done. Clones are not asked for.',
    '',
    ...(simulated.length === 0
      ? ['Not simulated: a stage of which no task has begun, or too many tasks.']
      : [
          'simulated from the job as it ran, mean of five seeds:',
          ...simulated.map(simulatedLine),
          'Assumed: the job alone, on Lambda as simulated, with all slots; first attempts take what they took, or by',
          'their bytes where they were ended early; later ones a draw from their stage. Failures are left out.',
        ]),
  ];
}
