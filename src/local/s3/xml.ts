import { XMLParser } from 'fast-xml-parser';
import { badRequest } from './errors.ts';

const HEADER = '<?xml version="1.0" encoding="UTF-8"?>\n';
const NAMESPACE = 'http://s3.amazonaws.com/doc/2006-03-01/';

/** One element holding text; `undefined` gives nothing at all, the empty string an empty element. */
export function textElement(name: string, value: string | number | boolean | undefined): string {
  return value === undefined ? '' : `<${name}>${escapeText(String(value))}</${name}>`;
}

/** One element holding other elements. */
export function parentElement(name: string, ...children: readonly string[]): string {
  return `<${name}>${children.join('')}</${name}>`;
}

/** A whole answer with S3's namespace. */
export function xmlDocument(root: string, ...children: readonly string[]): string {
  return `${HEADER}<${root} xmlns="${NAMESPACE}">${children.join('')}</${root}>`;
}

/** The body of an error answer, which has no namespace on S3 either. */
export function errorDocument(code: string, message: string, resource: string, requestId: string): string {
  return (
    HEADER +
    parentElement(
      'Error',
      textElement('Code', code),
      textElement('Message', message),
      textElement('Resource', resource),
      textElement('RequestId', requestId),
    )
  );
}

function escapeText(text: string): string {
  // Control characters have no literal form in XML; S3 writes them as references.
  return text.replace(/[&<>"\u0000-\u001f\u007f]/g, (char) => {
    if (char === '&') return '&amp;';
    if (char === '<') return '&lt;';
    if (char === '>') return '&gt;';
    if (char === '"') return '&quot;';
    return `&#x${char.charCodeAt(0).toString(16)};`;
  });
}

const parser = new XMLParser({
  parseTagValue: false,
  trimValues: false,
  ignoreAttributes: true,
  htmlEntities: true,
});

/** A parsed element: text, other elements by name, or several of one name. */
export type XmlNode = string | readonly XmlNode[] | { readonly [name: string]: XmlNode };

/**
 * The root element of a request body.
 *
 * @throws {S3Error} MalformedXML if the text is not XML or its root has another name.
 */
export function parseXml(text: string, root: string): XmlNode {
  // The parser closes what was left open, so a document cut short must be found out here.
  if (!text.trimEnd().endsWith(`</${root}>`)) throw malformed();
  let parsed: XmlNode;
  try {
    parsed = parser.parse(text) as XmlNode;
  } catch {
    throw malformed();
  }
  const [node] = childrenOf(parsed, root);
  if (node === undefined) throw malformed();
  return node;
}

/** All children of one name; none, if there are none. */
export function childrenOf(node: XmlNode, name: string): readonly XmlNode[] {
  if (typeof node === 'string' || isList(node) || !Object.hasOwn(node, name)) return [];
  const child = node[name];
  if (child === undefined) return [];
  return isList(child) ? child : [child];
}

/** The text of the first child of that name, or `undefined`. */
export function childText(node: XmlNode, name: string): string | undefined {
  const [child] = childrenOf(node, name);
  return typeof child === 'string' ? child : undefined;
}

function isList(node: XmlNode): node is readonly XmlNode[] {
  return Array.isArray(node);
}

function malformed(): Error {
  return badRequest(
    'MalformedXML',
    'The XML you provided was not well-formed or did not validate against our schema.',
  );
}
