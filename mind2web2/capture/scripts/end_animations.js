// Brings what fades or slides in to its end, and stops what never ends.
() => {
  for (const animation of document.getAnimations()) {
    try {
      animation.finish();
    } catch {
      animation.cancel();
    }
  }
}
