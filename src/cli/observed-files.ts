import { type Dirent, lstat, readdir, realpath, stat, type Stats } from 'node:fs';
import { resolve, sep } from 'node:path';
import type { FileSystemAdapter } from 'tinyglobby';
import { systemCode } from './failures.ts';

/** The file system as a search by pattern sees it, and what it could not see. */
export interface ObservedFiles {
  readonly files: FileSystemAdapter;
  /** The first directory that could not be read, and in which there may be what the pattern matches. */
  readonly unread: () => { readonly path: string; readonly error: Error } | undefined;
}

type Done<T> = (error: NodeJS.ErrnoException | null, result: T) => void;

/**
 * The search passes over what it cannot read, and so would a job. Here such a directory is told, and a link that leads
 * nowhere is a file like others: whoever reads what was found sees then that it is none, where the pattern names it.
 */
export function observedFiles(pattern: string, cwd: string): ObservedFiles {
  const mayHold = reachOf(pattern, cwd);
  /** The search reads a directory behind a link by its real path, and goes by that of the link. */
  const links = new Map<string, string>();
  let unread: ReturnType<ObservedFiles['unread']>;
  const files = {
    readdir: (path: string, options: { withFileTypes: true }, done: Done<Dirent[]>) => {
      readdir(path, options, (error, entries) => {
        const found = links.get(resolve(path)) ?? resolve(path);
        // What is not there holds nothing that matches.
        const isThere = error !== null && !['ENOENT', 'ENOTDIR'].includes(systemCode(error) ?? '');
        if (isThere && mayHold(found)) unread ??= { path: found, error };
        done(error, entries);
      });
    },
    realpath: (path: string, done: Done<string>) => {
      realpath(path, (error, real) => {
        if (error === null) links.set(real, path);
        done(null, error === null ? real : path);
      });
    },
    stat: (path: string, done: Done<Stats>) => {
      stat(path, (error, info) => {
        if (error === null) done(null, info);
        else lstat(path, done);
      });
    },
  };
  return { files: files as unknown as FileSystemAdapter, unread: () => unread };
}

/**
 * Which directories may hold what a pattern matches, of those that a search for it looks into. One that ends with a star
 * matches nothing that lies deeper than itself, such as in a directory beside the files that it is meant for.
 */
function reachOf(pattern: string, cwd: string): (directory: string) => boolean {
  const depthOf = (path: string): number => path.split(sep).length;
  const path = pattern.replace(/\/+$/, '');
  const isOfOneDepth = path.endsWith('*') && !/\*\*|[{(]/.test(path);
  const depth = depthOf(resolve(cwd, path));
  return (directory) => !isOfOneDepth || depthOf(directory) < depth;
}
