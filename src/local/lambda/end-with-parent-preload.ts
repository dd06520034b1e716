// Preloaded (`node --import`) into programs that are not ours.
import { endWithParent } from './end-with-parent.ts';

endWithParent();
