import { type ECSClient, StopTaskCommand } from '@aws-sdk/client-ecs';
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
    for (let tries = 1; ; tries++) {
      try {
        await this.ecs.send(new StopTaskCommand(asked));
        return undefined;
      } catch (cause) {
        const fault = faultOf(cause);
        if (isForgotten(fault.message)) return undefined;
        if (tries >= mostTries || !wasRefused(fault)) return `${fault.name}: ${fault.message}`;
        await backoff(firstBackoff + tries);
      }
    }
  }
}
