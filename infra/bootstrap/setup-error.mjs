/** The machine or the checkout cannot run the script. The message is all that the user sees: it holds the remedy. */
export class SetupError extends Error {}
