import type { ReplayedSession, ReplayReport } from '../core/replay/replay-journal.ts';
import { formatCount, oneLine, plural } from './format.ts';
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
