import { beforeEach, describe, expect, it } from 'vitest';
import type { Worker } from '../../../src/contracts/job-spec.ts';
import { epochMs } from '../../../src/contracts/units.ts';
import {
  addAttempt,
  applyAttempt,
  createJobState,
  openStage,
  stageAt,
} from '../../../src/core/model/job-state.ts';
import type { AttemptView, JobState } from '../../../src/core/model/job-view.ts';
import { workerOf } from '../../../src/core/model/stage-worker.ts';
import { claimLeaseOf } from '../../../src/core/policy/lost-attempts.ts';
import { attempt, attemptRecord, tickConfig } from '../../support/job-states.ts';

const at = epochMs;
const id = attempt('map/0/0');
const fargate: Worker = { kind: 'fargate', size: 'medium' };
const config = { ...tickConfig, fargateClaimLeaseMs: 9_000 as never };

let state: JobState;

const known = (): AttemptView => {
  const view = state.attempts.get(id);
  if (view === undefined) throw new Error('no attempt');
  return view;
};
const kind = (): string => workerOf(stageAt(state, 0), known()).kind;

beforeEach(() => {
  state = createJobState([{ name: 'map', tasks: 2, upstream: [], sourceBytes: [1, 1] }]);
  openStage(state, 0, [], at(0));
});

describe('an attempt whose launch was withdrawn, of which the log says nothing', () => {
  it('is launched anew on another worker, for another reason', () => {
    addAttempt(state, id, 'backup', at(0));
    expect([kind(), claimLeaseOf(state, known(), config)]).toEqual(['lambda', 1_000]);
    addAttempt(state, id, 'retry', at(500), fargate);
    expect(known()).toMatchObject({ reason: 'retry', launchedAt: 500, state: 'launched' });
    expect([kind(), claimLeaseOf(state, known(), config)]).toEqual(['fargate', 9_000]);
    addAttempt(state, id, 'retry', at(700));
    expect([kind(), known().launchedAt]).toEqual(['lambda', 700]);
    expect(state.live.size).toBe(1);
  });

  it('is the same where its launch is merely said again, as by whoever takes the job over', () => {
    addAttempt(state, id, 'retry', at(0), fargate);
    addAttempt(state, id, 'retry', at(500), { ...fargate });
    expect(known()).toMatchObject({ launchedAt: 0, worker: fargate });
  });

  it('stays as it was once a worker has it', () => {
    addAttempt(state, id, 'first', at(0));
    applyAttempt(state, attemptRecord(id, 'running', 100), at(100));
    addAttempt(state, id, 'retry', at(500), fargate);
    expect(known()).toMatchObject({ reason: 'first', launchedAt: 0 });
    expect(kind()).toBe('lambda');
  });

  it('takes over the worker that it gets for itself after it rode with others', () => {
    addAttempt(state, attempt('map/1/0'), 'first', at(0));
    addAttempt(state, id, 'first', at(0), undefined, attempt('map/1/0'));
    addAttempt(state, id, 'first', at(500), fargate);
    expect(known()).toMatchObject({ place: 'own', launchedAt: 500 });
    expect(kind()).toBe('fargate');
  });
});
