import { InvokeCommand, type LambdaClient } from '@aws-sdk/client-lambda';
import { StoreUnavailableError } from '../../contracts/errors.ts';
import type { Forecaster } from '../../ports/forecaster.ts';
import { denialOf } from './denials.ts';
import { faultOf } from './faults.ts';

/** The function that computes forecasts, called asynchronously. */
export class LambdaForecaster implements Forecaster {
  private readonly client: LambdaClient;
  private readonly functionName: string;

  constructor(client: LambdaClient, functionName: string) {
    this.client = client;
    this.functionName = functionName;
  }

  async ask(name: string): Promise<void> {
    try {
      await this.client.send(
        new InvokeCommand({
          FunctionName: this.functionName,
          InvocationType: 'Event',
          Payload: new TextEncoder().encode(JSON.stringify({ name })),
        }),
      );
    } catch (cause) {
      const asked = { action: 'lambda:InvokeFunction', resource: `function ${this.functionName}` };
      const details = { name, fault: faultOf(cause).name };
      throw (
        denialOf(cause, asked) ??
        new StoreUnavailableError('a forecast was not asked for', details, { cause })
      );
    }
  }
}
