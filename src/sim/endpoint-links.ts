import type { EndpointLinks } from './fluid-network.ts';
import type { NodePool } from './node-pool.ts';
import type { ClusterScenario } from './cluster-scenario.ts';
import { endpointCount } from './sim-job.ts';

/** Bytes per millisecond; no limit where nothing is said. */
export const perMs = (bytesPerS: number | undefined): number =>
  bytesPerS === undefined ? Infinity : bytesPerS / 1_000;

/** The links of every endpoint: the hosts' or the nodes' where they have their own, else the zones'. */
export function linksOf(cluster: ClusterScenario, { hosts }: NodePool): EndpointLinks[] {
  const { nodeLinks, zones } = cluster;
  return Array.from({ length: endpointCount(cluster) }, (_, place) => {
    const links = cluster.hosts ?? nodeLinks ?? zones[place];
    const disk = cluster.hosts === undefined ? undefined : hosts[place]?.diskBytesPerS;
    return {
      upBytesPerMs: perMs(links?.upBytesPerS),
      downBytesPerMs: perMs(links?.downBytesPerS),
      diskBytesPerMs: disk?.map((bytesPerS) => bytesPerS / 1_000),
    };
  });
}
