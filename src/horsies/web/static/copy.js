// Buttons that copy a text: <button data-copy="text">.
export function offerCopies() {
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    // Kept: a second click finds "Copied" on the button.
    const was = button.dataset.label ??= button.textContent;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Copying is not allowed here";
    }
    setTimeout(() => { button.textContent = was; }, 1500);
  });
}
