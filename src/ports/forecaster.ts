/** Works out forecasts elsewhere: never on the path of a scheduler or of a job's end. */
export interface Forecaster {
  /**
   * Asks that C(p, a) be computed for the jobs of a name, from what was learned of them; answers when that was taken up,
   * not when it is done. May be asked again at any time. Throws where nobody can be asked now.
   */
  ask(name: string): Promise<void>;
}
