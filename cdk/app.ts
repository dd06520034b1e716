import { readFileSync } from 'node:fs';
import { App } from 'aws-cdk-lib';
import * as z from 'zod';
import { ConfigError } from './context.ts';
import { addSystem } from './system.ts';

// Without the CDK's command nobody reads cdk.json; with it, its context comes again and wins.
const cdkJson = z
  .object({ context: z.record(z.string(), z.unknown()) })
  .parse(JSON.parse(readFileSync(new URL('../cdk.json', import.meta.url), 'utf8')));

const app = new App({
  context: cdkJson.context,
  outdir: process.env['CDK_OUTDIR'] ?? 'cdk.out',
  autoSynth: false,
});
try {
  addSystem(app);
} catch (cause) {
  if (!(cause instanceof ConfigError)) throw cause;
  console.error(`outrider: ${cause.message}`);
  process.exit(1);
}
app.synth();
