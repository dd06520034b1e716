/** Attributes of an element; numbers are written to a hundredth, undefined ones left out. */
export type Attributes = Readonly<Record<string, string | number | undefined>>;

const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Text as XML may hold it: markup escaped, control characters gone. */
export const escapeXml = (text: string): string =>
  text.replace(/\p{Cc}/gu, ' ').replace(/[&<>"]/g, (each) => escapes[each] ?? '');

const valueOf = (value: string | number): string =>
  typeof value === 'number' ? String(Math.round(value * 100) / 100) : escapeXml(value);

/** One element; `content` is markup already, or absent. */
export function element(name: string, attributes: Attributes, content = ''): string {
  const written = Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [` ${key}="${valueOf(value)}"`],
  );
  return content === ''
    ? `<${name}${written.join('')}/>`
    : `<${name}${written.join('')}>${content}</${name}>`;
}

/** Text at a place. */
export const label = (text: string, x: number, y: number, more: Attributes = {}): string =>
  element('text', { x, y, 'font-size': 12, fill: '#222', ...more }, escapeXml(text));

/** A whole picture on white, with a title for readers of screens. */
export const picture = (
  size: { readonly width: number; readonly height: number },
  title: string,
  parts: readonly string[],
): string =>
  `<?xml version="1.0" encoding="UTF-8"?>\n${element(
    'svg',
    {
      xmlns: 'http://www.w3.org/2000/svg',
      width: size.width,
      height: size.height,
      viewBox: `0 0 ${size.width} ${size.height}`,
      'font-family': 'system-ui, sans-serif',
      role: 'img',
    },
    [
      element('title', {}, escapeXml(title)),
      element('rect', { width: size.width, height: size.height, fill: '#fff' }),
      ...parts,
    ].join('\n'),
  )}\n`;
