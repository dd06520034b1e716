import { InvalidInputError } from '../contracts/errors.ts';
import { limits } from '../contracts/limits.ts';
import type {
  AggregateNode,
  DatasetNode,
  JoinNode,
  KeyedNode,
  RecordwiseNode,
  ReduceNode,
  SinkNode,
  SortNode,
  SourceNode,
  TopNode,
} from './graph.ts';
import { countConsumers } from './consumers.ts';

/** Where the records of a stage come from: its first input, and of a join its second. */
export type Head =
  | { readonly kind: 'source'; readonly node: SourceNode }
  /** Records as another stage gave them. */
  | { readonly kind: 'records' }
  | { readonly kind: 'fold'; readonly node: ReduceNode | AggregateNode }
  | { readonly kind: 'group' }
  | { readonly kind: 'join'; readonly node: JoinNode }
  | { readonly kind: 'topped'; readonly node: TopNode };

/** What is done to one record after the other. */
export type Step =
  | RecordwiseNode
  /** A join with the side that input number `input` brings whole. */
  | { readonly kind: 'probe'; readonly node: JoinNode; readonly input: number };

/** Where records go. */
export type Tail =
  | { readonly kind: 'sink'; readonly node: SinkNode }
  | { readonly kind: 'records' }
  | { readonly kind: 'keyed'; readonly node: KeyedNode }
  | { readonly kind: 'combined'; readonly node: ReduceNode | AggregateNode }
  | { readonly kind: 'sortable'; readonly node: SortNode }
  | { readonly kind: 'top'; readonly node: TopNode };

/** What the tasks of a stage do. */
export type Program =
  | { readonly kind: 'flow'; readonly head: Head; readonly steps: readonly Step[]; readonly tail: Tail }
  /** Of a sort: a sample of the keys, the bounds between parts, and records sent between these. */
  | { readonly kind: 'sample' }
  | { readonly kind: 'bounds' }
  | { readonly kind: 'range' };

export type Pattern = 'all-to-all' | 'one-to-one' | 'many-to-one' | 'broadcast';

export type CompiledInput =
  | { readonly kind: 'source'; readonly node: SourceNode }
  | { readonly kind: 'stage'; readonly stage: CompiledStage; readonly pattern: Pattern };

export interface CompiledStage {
  readonly name: string;
  readonly inputs: readonly CompiledInput[];
  readonly program: Program;
  /** Parts of its output, where the job says so. */
  readonly parts?: number;
}

/**
 * The stages of a graph, each after those that it reads, the one that writes last. Neighbouring record-wise steps share a
 * stage; what several others read is made once.
 *
 * @throws InvalidInputError where they are more than a job may have.
 */
export function compileGraph(sink: SinkNode): readonly CompiledStage[] {
  const compiler = new Compiler(sink);
  const { stages } = compiler;
  if (stages.length > limits.stages) {
    throw new InvalidInputError(
      `the job has ${String(stages.length)} stages (${stages.map(({ name }) => name).join(', ')}), and may have ` +
        `${String(limits.stages)}: a reduce or join takes one or two, a sort four, each round of a loop its own`,
    );
  }
  return stages;
}

class Compiler {
  readonly stages: CompiledStage[] = [];
  readonly #consumers: ReadonlyMap<DatasetNode, number>;
  /** Stages that are made already, by what they were made for. */
  readonly #made = new Map<object, CompiledStage>();
  readonly #names = new Map<string, number>();

  constructor(sink: SinkNode) {
    this.#consumers = countConsumers(sink);
    this.#flow(sink.parent, { kind: 'sink', node: sink });
  }

  #add(base: string, stage: Omit<CompiledStage, 'name'>): CompiledStage {
    const number = (this.#names.get(base) ?? 0) + 1;
    this.#names.set(base, number);
    const added = { name: number === 1 ? base : `${base}-${String(number)}`, ...stage };
    this.stages.push(added);
    return added;
  }

  #once(origin: object, make: () => CompiledStage): CompiledStage {
    const made = this.#made.get(origin) ?? make();
    this.#made.set(origin, made);
    return made;
  }

  /** Several read it, so that it is made once and kept. A source is read again instead, which costs no more. */
  #isShared(node: DatasetNode): boolean {
    return node.kind !== 'source' && (this.#consumers.get(node) ?? 0) > 1;
  }

  /** A stage that gives the records of `node` to `tail`. */
  #flow(node: DatasetNode, tail: Tail, parts?: number): CompiledStage {
    const steps: Step[] = [];
    const sides: CompiledInput[] = [];
    let at = node;
    // A shared node is read from its stage, except where this is that stage.
    for (let isFirst = true; ; isFirst = false) {
      const isOwn = isFirst && tail.kind === 'records';
      if (!isOwn && this.#isShared(at)) {
        const stage = this.#shared(at);
        return this.#finish('map', { kind: 'records' }, [from(stage, 'one-to-one')], {
          steps,
          sides,
          tail,
          parts,
        });
      }
      if (at.kind === 'map' || at.kind === 'flatMap' || at.kind === 'filter') {
        steps.unshift(at);
        at = at.parent;
      } else if (at.kind === 'join' && at.broadcast) {
        sides.unshift(from(this.#keyed(at.right), 'broadcast'));
        // Which input it is, is known when all are.
        steps.unshift({ kind: 'probe', node: at, input: -1 });
        at = at.left.parent;
      } else break;
    }
    const { base, head, inputs } = this.#headOf(at);
    return this.#finish(base, head, inputs, { steps, sides, tail, parts });
  }

  #finish(
    base: string,
    head: Head,
    inputs: readonly CompiledInput[],
    {
      steps,
      sides,
      tail,
      parts,
    }: { steps: readonly Step[]; sides: readonly CompiledInput[]; tail: Tail; parts: number | undefined },
  ): CompiledStage {
    let input = inputs.length;
    const numbered = steps.map((step) => (step.kind === 'probe' ? { ...step, input: input++ } : step));
    return this.#add(base, {
      inputs: [...inputs, ...sides],
      program: { kind: 'flow', head, steps: numbered, tail },
      ...(parts === undefined ? {} : { parts }),
    });
  }

  #headOf(node: DatasetNode): { base: string; head: Head; inputs: readonly CompiledInput[] } {
    switch (node.kind) {
      case 'source':
        return { base: 'read', head: { kind: 'source', node }, inputs: [{ kind: 'source', node }] };
      case 'reduce':
      case 'aggregate': {
        const stage = this.#once(node, () => this.#flow(node.keyed.parent, { kind: 'combined', node }));
        return { base: node.kind, head: { kind: 'fold', node }, inputs: [from(stage, 'all-to-all')] };
      }
      case 'group':
        return {
          base: 'group',
          head: { kind: 'group' },
          inputs: [from(this.#keyed(node.keyed), 'all-to-all')],
        };
      case 'join':
        return {
          base: 'join',
          head: { kind: 'join', node },
          inputs: [from(this.#keyed(node.left), 'all-to-all'), from(this.#keyed(node.right), 'all-to-all')],
        };
      case 'sort':
        return {
          base: 'sort',
          head: { kind: 'records' },
          inputs: [
            from(
              this.#once(node, () => this.#sorted(node)),
              'all-to-all',
            ),
          ],
        };
      case 'top': {
        const stage = this.#once(node, () => this.#flow(node.parent, { kind: 'top', node }));
        return { base: 'top', head: { kind: 'topped', node }, inputs: [from(stage, 'many-to-one')] };
      }
      case 'map':
      case 'flatMap':
      case 'filter':
        throw new Error('record-wise steps belong to a stage');
    }
  }

  #shared(node: DatasetNode): CompiledStage {
    return this.#once(node, () => this.#flow(node, { kind: 'records' }));
  }

  #keyed(node: KeyedNode): CompiledStage {
    return this.#once(node, () => this.#flow(node.parent, { kind: 'keyed', node }));
  }

  /** The stage whose partitions, each in order, are the sorted records. */
  #sorted(node: SortNode): CompiledStage {
    const { parts } = node;
    const records = this.#flow(node.parent, { kind: 'sortable', node }, parts === 1 ? 1 : undefined);
    if (parts === 1) return records;
    const sample = this.#add('sort-sample', {
      inputs: [from(records, 'one-to-one')],
      program: { kind: 'sample' },
    });
    const bounds = this.#add('sort-bounds', {
      inputs: [from(sample, 'many-to-one')],
      program: { kind: 'bounds' },
      ...(parts === undefined ? {} : { parts }),
    });
    return this.#add('sort-range', {
      inputs: [from(records, 'one-to-one'), from(bounds, 'broadcast')],
      program: { kind: 'range' },
      ...(parts === undefined ? {} : { parts }),
    });
  }
}

const from = (stage: CompiledStage, pattern: Pattern): CompiledInput => ({ kind: 'stage', stage, pattern });

/**
 * Inputs of a join by shuffle of which several tasks may read a partition, a part each and the other side whole: the pairs
 * of all are the same. Left-hand records without a partner are known only to who reads the whole right-hand side. Undefined
 * where a side is broadcast besides, and where the stage is no such join.
 */
export function cutInputsOf({ inputs, program }: CompiledStage): readonly number[] | undefined {
  if (program.kind !== 'flow' || program.head.kind !== 'join' || inputs.length !== 2) return undefined;
  return program.head.node.how === 'left' ? [0] : [0, 1];
}

/**
 * Whether a task of the stage may be cut between any two records of its files, where the job's functions keep nothing over
 * records (`JobSettings.resumes`): what a tail holds at a cut it gives away, sums and greatest records, which those who read
 * the stage put together with what comes after it as they do with those of other tasks.
 */
export const mayBeResumed = ({ program }: CompiledStage): boolean =>
  program.kind === 'flow' && program.head.kind === 'source';

/** Whether another stage reads this one all-to-all, so that its output has partitions. */
export const isShuffled = (stage: CompiledStage, stages: readonly CompiledStage[]): boolean =>
  stages.some(({ inputs }) =>
    inputs.some((input) => input.kind === 'stage' && input.stage === stage && input.pattern === 'all-to-all'),
  );
