/** Copies of attempts, and launches that were declined: wrong wherever no node is slow. */
export const noCopies = { backups: 0, restarts: 0, clones: 0, declined: 0 };
