import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import { describeObjectStore } from './object-store-suite.ts';

describeObjectStore('memory', () => new MemoryObjectStore());
