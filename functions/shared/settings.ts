import { zoneOfBucket } from '../../src/contracts/directory-buckets.ts';
import { BrokenInvariantError } from '../../src/contracts/errors.ts';
import { type WorkerSize, workerSizes } from '../../src/contracts/job-spec.ts';
import { Setting } from '../../src/contracts/settings.ts';
import { type DurationMs, durationMs } from '../../src/contracts/units.ts';

/** The environment of a function, as the CDK app fills it. */
export type Environment = Readonly<Record<string, string | undefined>>;

type SettingName = (typeof Setting)[keyof typeof Setting];

/** The text of a setting; a missing one stops the function at its cold start, not at its first job. */
export function textSetting(env: Environment, name: SettingName): string {
  const value = env[name];
  if (value === undefined || value === '') throw new BrokenInvariantError(`setting ${name} is missing`);
  return value;
}

/** A whole number of at least 1. */
export function numberSetting(env: Environment, name: SettingName): number {
  const value = Number(textSetting(env, name));
  if (!Number.isInteger(value) || value < 1) {
    throw new BrokenInvariantError(`setting ${name} must be a whole number of at least 1`, {
      value: env[name],
    });
  }
  return value;
}

/** A length of time in milliseconds, at least 1. */
export const durationSetting = (env: Environment, name: SettingName): DurationMs =>
  durationMs(numberSetting(env, name));

/** Whether a setting is `true`; absent, it is not. */
export const flagSetting = (env: Environment, name: SettingName): boolean => env[name] === 'true';

/** Comma-separated names. */
export const listSetting = (env: Environment, name: SettingName): readonly string[] =>
  textSetting(env, name)
    .split(',')
    .filter((part) => part !== '');

/** The subnets in which tasks run, with the zone of each where those are told. Throws where not each has one. */
export function subnetsSetting(env: Environment): readonly { readonly id: string; readonly zone?: string }[] {
  const ids = listSetting(env, Setting.subnets);
  const told = env[Setting.subnetZones] ?? '';
  if (told === '') return ids.map((id) => ({ id }));
  const zones = told.split(',').filter((zone) => zone !== '');
  if (zones.length !== ids.length)
    throw new BrokenInvariantError(`setting ${Setting.subnetZones} must name the zone of each subnet`, {
      subnets: ids.length,
      zones: zones.length,
    });
  return ids.map((id, at) => ({ id, zone: zones[at] ?? '' }));
}

/**
 * Ids of zones by their names, as far as they are told. What is none is left out: a zone is good to know, not needed, and a
 * name that leads nowhere stays what it is.
 */
export const zoneIdsSetting = (env: Environment): ReadonlyMap<string, string> =>
  new Map(
    (env[Setting.zoneIds] ?? '').split(',').flatMap((pair): [string, string][] => {
      const [, name, id] = /^([a-z0-9-]+)=([a-z0-9-]+-az\d+)$/.exec(pair) ?? [];
      return name === undefined || id === undefined ? [] : [[name, id]];
    }),
  );

/** The directory buckets of the tier `zonal`, one per zone; none where the deployment has none. */
export const zonalBucketsSetting = (env: Environment): readonly string[] =>
  (env[Setting.zonalBuckets] ?? '').split(',').filter((bucket) => zoneOfBucket(bucket) !== undefined);

/** The name of the worker function of each size. */
export function workerFunctionsSetting(env: Environment): Readonly<Record<WorkerSize, string>> {
  const parsed: unknown = JSON.parse(textSetting(env, Setting.workerFunctions));
  const names = new Map(typeof parsed === 'object' && parsed !== null ? Object.entries(parsed) : []);
  const nameOf = (size: WorkerSize): string => {
    const name: unknown = names.get(size);
    if (typeof name !== 'string')
      throw new BrokenInvariantError(`setting ${Setting.workerFunctions} lacks "${size}"`);
    return name;
  };
  const sizes = Object.keys(workerSizes) as WorkerSize[];
  return Object.fromEntries(sizes.map((size) => [size, nameOf(size)])) as Record<WorkerSize, string>;
}

/** How long attempts may take to stop: two heartbeats to hear of it, and time to remove what they wrote. */
export const patienceOf = (env: Environment): DurationMs =>
  durationMs(2 * durationSetting(env, Setting.heartbeatMs) + 5_000);
