/** Something in a template is wrong, or is not known here: the message names the resource and the property. */
export class ProvisionError extends Error {
  override readonly name = 'ProvisionError';
}

/** An error at a property of a resource: `Stack/LogicalId (Type) Properties.Path: what is wrong`. */
export function provisionError(where: string, problem: string): ProvisionError {
  return new ProvisionError(`${where}: ${problem}`);
}
