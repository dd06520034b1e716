import { fnv1a } from '../../contracts/fnv1a.ts';
import type { JobId } from '../../contracts/ids.ts';
import type { EpochMs } from '../../contracts/units.ts';
import { ascending, median } from '../../lib/quantiles.ts';
import type { JobState, StageView } from '../model/job-view.ts';
import type { ToldZone, ZoneBook, ZoneSign } from '../model/zone-book.ts';
import { toldOfZonesAt } from './mantri/earlier-zones.ts';
import { tellOfStage } from './node-signs.ts';

/** A zone is slow for others, too, where its tasks took so many times what those elsewhere did. */
const factor = 2;
/** Machines that must tell of a zone, and as many of all others: several tasks of one tell of the machine. */
const leastNodes = 4;
/** Of a slow zone no more than so many tasks were faster than that. */
const fewFast = 0.1;

/** How much slower than usual for their input attempts in a zone were, and where they ran. */
interface Told {
  readonly slowdowns: number[];
  readonly nodes: Set<string>;
}

function toldOf(stage: StageView): ReadonlyMap<string, Told> {
  const zones = new Map<string, Told>();
  // What one has read that was stopped at a third of the usual time lies in buffers: in a slow zone it looked like one elsewhere.
  tellOfStage(stage, factor, ({ zone }, node, slowdown) => {
    if (zone === undefined || slowdown === undefined) return;
    const told = zones.get(zone) ?? { slowdowns: [], nodes: new Set() };
    zones.set(zone, told);
    told.slowdowns.push(slowdown);
    told.nodes.add(node);
  });
  return zones;
}

/** How slow a zone is beside all others; undefined where it is not slow, or too little is told. */
function slowness(zone: string, zones: ReadonlyMap<string, Told>): number | undefined {
  const own = zones.get(zone);
  const others = [...zones].flatMap(([name, told]) => (name === zone ? [] : [told]));
  const machines = others.reduce((sum, { nodes }) => sum + nodes.size, 0);
  if (own === undefined || own.nodes.size < leastNodes || machines < leastNodes) return undefined;
  const usual = median(others.flatMap(({ slowdowns }) => slowdowns));
  const fast = ascending(own.slowdowns)[Math.floor(fewFast * own.slowdowns.length)];
  const middle = median(own.slowdowns);
  if (usual === undefined || fast === undefined || middle === undefined || fast < factor * usual)
    return undefined;
  return middle / usual;
}

/**
 * What a job's stages that are done have found of zones that other jobs are to know: a zone in which nothing was fast,
 * on several machines. Stricter than what a stage makes of its own zones, since all jobs keep out of it: what
 * stragglers do by chance must not spread. Costs a look at every task of those stages.
 *
 * Source: ours, as the node book has it of nodes.
 */
export function zoneSigns(jobId: JobId, { stages }: JobState, now: EpochMs): ZoneBook {
  return stages.flatMap((stage): ZoneSign[] => {
    const at = toldOfZonesAt(stage, now);
    if (at === undefined) return [];
    const told = toldOf(stage);
    const zones = [...told].map(([zone, { slowdowns }]): ToldZone => ({
      zone,
      factor: slowness(zone, told) ?? 1,
      samples: slowdowns.length,
    }));
    if (zones.every((each) => each.factor === 1)) return [];
    return [{ of: fnv1a(`${jobId}/${stage.shape.name}`).toString(36), at, zones }];
  });
}
