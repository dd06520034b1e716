import type { Command } from 'commander';
import { writeJson, type Console } from './console.ts';

/** `outrider openapi`: the REST API for other people's tools. */
export function addOpenApiCommand(program: Command, console: Console, version: string): void {
  program
    .command('openapi')
    .description('print the OpenAPI 3.1 document of the REST API')
    .option('--json', 'as it is anyway')
    .action(async () => {
      const { openApiDocument } = await import('./openapi.ts');
      writeJson(console, openApiDocument(version));
    });
}
