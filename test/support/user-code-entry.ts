import { fileURLToPath } from 'node:url';

/** The module that workers start for user code, as Node runs it from the sources. */
export const userCodeEntry = fileURLToPath(new URL('user-code-host.js', import.meta.url));
