import { DescribeTasksCommand, type ECSClient, StopTaskCommand } from '@aws-sdk/client-ecs';
import { ownStopReason } from '../../contracts/worker-events.ts';
import type { WorkerStopper } from '../../ports/worker-stopper.ts';
import { backoff } from './backoff.ts';
import { type Fault, faultOf, isPassing } from './faults.ts';

/** The name of a node that is a task on Fargate: the task's ARN. */
const taskName = /^arn:[^:]+:ecs:/;
/** ECS forgets a task an hour after its end. */
const isForgotten = (message: string): boolean => /task was not found/i.test(message);

/** Of a call that ECS refuses for now. Its caller holds up a tick: at most 0.2 s, 0.4 s and 0.8 s pass between them. */
const mostTries = 4;
const firstBackoff = 3;
/** Not where no answer came: another would be waited for as long. */
const wasRefused = (fault: Fault): boolean => fault.status !== undefined && isPassing(fault);

/** Tasks that one DescribeTasks takes. */
const describedAtOnce = 100;
/** Tasks that are asked for at most, the first of those that are named. */
const mostDescribed = 10_000;

/** Asks ECS, a few times where it refuses to answer for now; answers what went wrong, if anything. */
async function asking(ask: () => Promise<unknown>): Promise<string | undefined> {
  for (let tries = 1; ; tries++) {
    try {
      await ask();
      return undefined;
    } catch (cause) {
      const fault = faultOf(cause);
      if (isForgotten(fault.message)) return undefined;
      if (tries >= mostTries || !wasRefused(fault)) return `${fault.name}: ${fault.message}`;
      await backoff(firstBackoff + tries);
    }
  }
}

/** Stops tasks of one cluster of ECS. */
export class EcsTaskStopper implements WorkerStopper {
  private readonly ecs: ECSClient;
  private readonly cluster: string;

  constructor(ecs: ECSClient, cluster: string) {
    this.ecs = ecs;
    this.cluster = cluster;
  }

  async stop(node: string): Promise<string | undefined> {
    if (!taskName.test(node)) return undefined;
    const asked = { cluster: this.cluster, task: node, reason: ownStopReason };
    return asking(() => this.ecs.send(new StopTaskCommand(asked)));
  }

  async living(
    nodes: readonly string[],
  ): Promise<{ readonly nodes: readonly string[]; readonly wrong?: string }> {
    const named = [...new Set(nodes)].filter((node) => taskName.test(node)).slice(0, mostDescribed);
    const found: string[] = [];
    for (let from = 0; from < named.length; from += describedAtOnce) {
      const asked = { cluster: this.cluster, tasks: named.slice(from, from + describedAtOnce) };
      const wrong = await asking(async () => {
        const { tasks = [] } = await this.ecs.send(new DescribeTasksCommand(asked));
        for (const { taskArn, desiredStatus } of tasks)
          if (taskArn !== undefined && desiredStatus !== 'STOPPED') found.push(taskArn);
      });
      if (wrong !== undefined) return { nodes: found, wrong };
    }
    return { nodes: found };
  }
}
