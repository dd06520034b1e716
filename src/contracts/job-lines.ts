import type { JobId } from './ids.ts';

/**
 * Whether a line of a log that names a job is another's, by what it says itself: that one may read the output of the first,
 * and names it in what it prints and in what it fails over. What is no JSON, as the lines of a host, does not say whose it is.
 */
export function isOfAnother(jobId: JobId, text: string): boolean {
  if (!text.startsWith('{')) return false;
  try {
    const { jobId: own } = JSON.parse(text) as { readonly jobId?: unknown };
    return typeof own === 'string' && own !== jobId;
  } catch {
    return false;
  }
}
