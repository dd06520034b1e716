import { extname } from 'node:path';

const typedExtensions: ReadonlySet<string> = new Set(['.ts', '.mts', '.cts', '.tsx']);
const extensions: ReadonlySet<string> = new Set([...typedExtensions, '.js', '.mjs', '.cjs']);

/** Whether the user names a program and not a built-in job or a spec. */
export const isJobFile = (job: string): boolean => extensions.has(extname(job));
/** Whether a job file has types that can be checked. */
export const hasTypes = (job: string): boolean => typedExtensions.has(extname(job));
