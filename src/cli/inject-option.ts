import { Option } from 'commander';
import { InvalidInputError } from '../contracts/errors.ts';
import { type Injection, parseInjection } from '../local/inject/injection.ts';
import { badInput } from './failures.ts';

/** `--inject`, for the commands that start an embedded stack. Given more than once, all of it counts. */
export const injectOption = (): Option =>
  new Option(
    '--inject <faults>',
    'let things go wrong, such as slow=8x2,kill=1,throttle=0.2,seed=7: the first 2 workers run 8 times slower, ' +
      '1 is killed at work, a fifth of the launch requests is refused; with memory-hog=1 a worker runs out of memory; with spot=1 a Fargate task loses its place; with slow-read=0.1@5 a tenth of the reads is 5 s late; with cold-start=0.1@5 a tenth of the workers starts 5 s late; with pause=0.1@5 a tenth of the attempts stands still for 5 s; with skew=0.1@90 the clocks of a tenth of the workers are off by 90 s; with lose-object=1,corrupt-object=1 an ' +
      'intermediate object is removed, and a bit of another is flipped; with lose-invocation=1,duplicate-invocation=1 an ' +
      'accepted launch reaches no worker, and another two; with lose-zone=use1-az2@3, or us-east-1b, the storage of a zone ' +
      'is lost 3 s after work has begun, with slow-zone=use1-az1@5 it takes 5 times as long (jobs with --storage zonal); with ' +
      'slow-zone=us-east-1a@6 tasks on Fargate in that zone run 6 times slower',
  ).argParser((text: string, before: string | undefined) =>
    before === undefined ? text : `${before},${text}`,
  );

/** The faults that `--inject` names. Throws `InvalidInputError` on anything else. */
export function parseInject(text: string): Injection {
  try {
    return parseInjection(text);
  } catch (error) {
    if (error instanceof InvalidInputError) throw badInput(`--inject ${error.message}`, error);
    throw error;
  }
}
