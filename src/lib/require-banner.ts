/** First line of a bundle that holds CommonJS packages, which call `require` for Node's own modules. */
export const requireBanner =
  "import { createRequire as outriderRequire } from 'node:module'; const require = outriderRequire(import.meta.url);";
