// The runtime of a worker function that has another language's managed runtime around it: its wrapper script starts
// Node with this module, which takes invocations from Lambda's Runtime API as AWS's own client does.
import type { Context } from 'aws-lambda';
import { handler } from './handler.ts';
import { serveInvocations } from '../shared/runtime-api.ts';

await serveInvocations(process.env, (event, context) => handler(event, context as Context));
