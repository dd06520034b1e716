import { type ECSClient, StopTaskCommand } from '@aws-sdk/client-ecs';
import { ownStopReason } from '../../contracts/worker-events.ts';
import type { WorkerStopper } from '../../ports/worker-stopper.ts';
import { faultOf } from './faults.ts';

/** The name of a node that is a task on Fargate: the task's ARN. */
const taskName = /^arn:[^:]+:ecs:/;
/** ECS forgets a task an hour after its end. */
const isForgotten = (message: string): boolean => /task was not found/i.test(message);

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
    try {
      await this.ecs.send(new StopTaskCommand(asked));
      return undefined;
    } catch (cause) {
      const { name, message } = faultOf(cause);
      return isForgotten(message) ? undefined : `${name}: ${message}`;
    }
  }
}
