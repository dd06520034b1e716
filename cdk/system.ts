import { type App, Validations } from 'aws-cdk-lib';
import { AwsSolutionsChecks } from 'cdk-nag';
import { readConfig } from './config.ts';
import { stackName } from './names.ts';
import { ApiStack } from './stacks/api.ts';
import { ComputeStack } from './stacks/compute.ts';
import { CoordinatorStack } from './stacks/coordinator.ts';
import { StorageStack } from './stacks/storage.ts';

/** The stacks of the system, as a test may want to look at them one by one. */
export interface OutriderSystem {
  readonly storage: StorageStack;
  readonly compute: ComputeStack;
  readonly coordinator: CoordinatorStack;
  readonly api: ApiStack;
}

/**
 * Adds the whole system to an app, and the checks that fail its synthesis.
 *
 * @throws Error on wrong settings in the app's context.
 */
export function addSystem(app: App): OutriderSystem {
  const config = readConfig(app.node);
  const storage = new StorageStack(app, stackName(config, 'Storage'), { config });
  const compute = new ComputeStack(app, stackName(config, 'Compute'), { config, storage });
  const coordinator = new CoordinatorStack(app, stackName(config, 'Coordinator'), {
    config,
    storage,
    compute,
  });
  const api = new ApiStack(app, stackName(config, 'Api'), { config, storage, compute, coordinator });
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
  return { storage, compute, coordinator, api };
}
