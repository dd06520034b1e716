import type { Command } from 'commander';
import * as z from 'zod';
import { defaultStateDir, quote } from './connection.ts';

/** Shape of the options by which a command is told which service to ask. */
export const targetOptions = {
  endpoint: z.string().optional(),
  stateDir: z.string().optional(),
};

/** Adds those options. */
export const addTargetOptions = (command: Command): Command =>
  command
    .option('--endpoint <url>', 'of the service (default: OUTRIDER_ENDPOINT, else the local stack)')
    .option('--state-dir <dir>', `of the local stack (default ${defaultStateDir})`);

/** The same options again, for a command that is told to people; empty where none were given. */
export const repeatedTarget = ({
  endpoint,
  stateDir,
}: {
  readonly endpoint?: string | undefined;
  readonly stateDir?: string | undefined;
}): string =>
  [
    ...(endpoint === undefined ? [] : [` --endpoint ${quote(endpoint)}`]),
    ...(stateDir === undefined ? [] : [` --state-dir ${quote(stateDir)}`]),
  ].join('');
