// The process for user code as tests start it: from the sources, as `functions/worker/user-code-host.ts`. Node keeps what it makes
// of them, which is most of what such a process costs; as in `src/cli/outrider.js`. JavaScript, since else taking types out of
// this file would cost as much again.
import { enableCompileCache, flushCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

enableCompileCache(fileURLToPath(new URL('../../node_modules/.cache/compiled', import.meta.url)));
const { runHost } = await import('../../src/worker/user-code/host.ts');
// Now, for its worker kills it in the end.
flushCompileCache();
await runHost();
