import { dollyAssignment } from './dolly-assignment.ts';
import { dollyClosedForms } from './dolly-closed-forms.ts';
import { dollyFacebook } from './dolly-facebook.ts';
import type { Experiment } from './experiment.ts';
import { fairSharing } from './fair-sharing.ts';
import { jockeyArbiter } from './jockey-arbiter.ts';
import { jockeyIndicators } from './jockey-indicators.ts';
import { jockeyPrediction } from './jockey-prediction.ts';
import { jockeySensitivity } from './jockey-sensitivity.ts';
import { jockeySlo } from './jockey-slo.ts';
import { lateExamples } from './late-examples.ts';
import { lateMixes } from './late-mixes.ts';
import { lateSleep } from './late-sleep.ts';
import { mantriExample } from './mantri-example.ts';
import { mantriPlacement } from './mantri-placement.ts';
import { mantriRecompute } from './mantri-recompute.ts';
import { mantriRestart } from './mantri-restart.ts';
import { policiesOnLambda } from './policies-on-lambda.ts';
import { policiesOnTraces } from './policies-on-traces.ts';
import { slotHandOver } from './slot-hand-over.ts';

/** All experiments, in the order in which they are listed and run. */
export const experiments: readonly Experiment[] = [
  lateSleep,
  lateMixes,
  lateExamples,
  mantriExample,
  mantriRestart,
  mantriPlacement,
  mantriRecompute,
  policiesOnTraces,
  policiesOnLambda,
  fairSharing,
  slotHandOver,
  dollyClosedForms,
  dollyFacebook,
  dollyAssignment,
  jockeyPrediction,
  jockeyIndicators,
  jockeySlo,
  jockeySensitivity,
  jockeyArbiter,
];
