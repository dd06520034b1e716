import type { DatasetNode, KeyedNode, SinkNode } from './graph.ts';

/**
 * How many stages or steps read each dataset of a graph. Records with keys that several groups and joins use are shuffled
 * once, so they count once.
 */
export function countConsumers(sink: SinkNode): ReadonlyMap<DatasetNode, number> {
  const counts = new Map<DatasetNode, number>();
  const shuffled = new Set<KeyedNode>();
  const open: DatasetNode[] = [];
  const reads = (node: DatasetNode): void => {
    const count = counts.get(node) ?? 0;
    counts.set(node, count + 1);
    if (count === 0) open.push(node);
  };
  const shuffles = (keyed: KeyedNode): void => {
    if (shuffled.has(keyed)) return;
    shuffled.add(keyed);
    reads(keyed.parent);
  };
  reads(sink.parent);
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    switch (node.kind) {
      case 'source':
        break;
      case 'map':
      case 'flatMap':
      case 'filter':
      case 'sort':
      case 'top':
        reads(node.parent);
        break;
      case 'reduce':
      case 'aggregate':
        reads(node.keyed.parent);
        break;
      case 'group':
        shuffles(node.keyed);
        break;
      case 'join':
        if (node.broadcast) reads(node.left.parent);
        else shuffles(node.left);
        shuffles(node.right);
    }
  }
  return counts;
}
