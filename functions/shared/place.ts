import { hostname } from 'node:os';
import { setTimeout } from 'node:timers/promises';
import * as z from 'zod';
import { type Environment, zoneIdsSetting } from './settings.ts';

/** Where an attempt runs. */
export interface Place {
  readonly node: string;
  /** Its id, such as `use1-az4`, by which storage in zones is known; of a task whose zone's id nobody has told, its name; absent where nobody tells. */
  readonly zone?: string;
  /** In the network of Fargate's tasks; absent elsewhere, and where nobody tells. */
  readonly address?: string;
}

const metadataTimeoutMs = 1_000;
/** A process that has just begun may get no answer in time for want of CPU alone, and ECS may know of a task a moment late. */
const mostTries = 3;
const pauseMs = 100;

async function ask(url: string, headers: Record<string, string>): Promise<unknown> {
  try {
    const response = await fetch(url, { headers, signal: AbortSignal.timeout(metadataTimeoutMs) });
    return response.ok ? await response.json() : undefined;
  } catch {
    return undefined; // The zone is good to know, not needed: no attempt fails for it.
  }
}

async function metadata(url: string, headers: Record<string, string>): Promise<unknown> {
  for (let tries = 1; ; tries++) {
    const answer = await ask(url, headers);
    if (answer !== undefined || tries === mostTries) return answer;
    await setTimeout(pauseMs);
  }
}

const lambdaMetadata = z.object({ AvailabilityZoneID: z.string() });

/** Log stream and zone id of this Lambda environment. */
export async function lambdaPlace(env: Environment): Promise<Place> {
  const node = `${env['AWS_LAMBDA_FUNCTION_NAME'] ?? 'lambda'}/${env['AWS_LAMBDA_LOG_STREAM_NAME'] ?? 'unknown'}`;
  const host = env['AWS_LAMBDA_METADATA_API'];
  if (host === undefined) return { node };
  const url = `http://${host}/2026-01-15/metadata/execution-environment`;
  const found = lambdaMetadata.safeParse(
    await metadata(url, { authorization: `Bearer ${env['AWS_LAMBDA_METADATA_TOKEN'] ?? ''}` }),
  );
  return { node, ...(found.success ? { zone: found.data.AvailabilityZoneID } : {}) };
}

const taskMetadata = z.object({
  TaskARN: z.string(),
  AvailabilityZone: z.string().optional(),
  Containers: z
    .array(
      z.object({
        Networks: z.array(z.object({ IPv4Addresses: z.array(z.string()).default([]) })).default([]),
      }),
    )
    .default([]),
});

/** ARN, zone and address of this Fargate task. ECS tells the name of the zone, and the deployment which id that has. */
export async function fargatePlace(env: Environment): Promise<Place> {
  const base = env['ECS_CONTAINER_METADATA_URI_V4'];
  // Each task has a name of its own there: those that know no more of themselves are not one node.
  const unknown = { node: `fargate/${hostname()}` };
  if (base === undefined) return unknown;
  const found = taskMetadata.safeParse(await metadata(`${base}/task`, {}));
  if (!found.success) return unknown;
  const { TaskARN: node, AvailabilityZone: name, Containers: containers } = found.data;
  const zone = name === undefined ? undefined : (zoneIdsSetting(env).get(name) ?? name);
  const [address] = containers.flatMap(({ Networks }) => Networks).flatMap((each) => each.IPv4Addresses);
  return { node, ...(zone === undefined ? {} : { zone }), ...(address === undefined ? {} : { address }) };
}
