import { expect, it } from 'vitest';
import { epochMs } from '../../../../src/contracts/units.ts';
import { launchMadeAt } from '../../../../src/core/estimate/progress-rate.ts';
import type { AttemptView } from '../../../../src/core/model/job-view.ts';

const at = epochMs;

it.each<readonly [string, Partial<AttemptView>, number]>([
  ['it was stamped with that', { launchedAt: at(120), recordedAt: at(100) }, 120],
  [
    'its record was made, where the log alone tells when it was decided',
    { launchedAt: at(50), recordedAt: at(100) },
    100,
  ],
  ['it was decided, as long as nobody has seen a record', { launchedAt: at(50) }, 50],
  [
    'its pack was launched, whenever its turn came in it',
    { launchedAt: at(900), rodeSince: at(50), recordedAt: at(100), place: 'carrier' },
    100,
  ],
  [
    'it got a place of its own after it had ridden',
    { launchedAt: at(900), rodeSince: at(50), recordedAt: at(100), place: 'own' },
    900,
  ],
])('a launch was made when %s', (_, attempt, madeAt) => {
  expect(launchMadeAt(attempt as AttemptView)).toBe(madeAt);
});
