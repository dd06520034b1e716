// The process that runs user code: its worker starts it, one for each attempt.
import { runHost } from '../../src/worker/user-code/host.ts';

await runHost();
