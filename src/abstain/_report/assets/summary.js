"use strict";

// The setting in sentences that need no statistics.
const Summary = (() => {
  const { count, percent, parts, plural, quantity } = Format;

  function headline({ setting: { reviewed, share }, dataset }) {
    const all = dataset.nInstances * dataset.nLabels;
    const decisions = plural(all, "label decision");
    if (reviewed === 0) return `The model answers all ${decisions} by itself. Nobody reviews anything.`;
    if (reviewed === all) return `All ${decisions} go to a person. The model answers nothing by itself.`;
    const [asked, answered] = parts(share);
    const rest = `${asked} (${count(reviewed)}) ${reviewed === 1 ? "goes" : "go"} to a person.`;
    return `Of ${decisions}, the model answers ${answered} by itself; ${rest}`;
  }

  function mistakes({ setting, full, dataset }) {
    if (setting.loss === "rank") return disorder(setting, full);
    const { answered, reviewed } = setting;
    const known = setting.wrong !== null;
    const wrong = known ? setting.wrong : setting.expectedWrong;
    const without = known ? setting.wrongWithout : full.expectedWrong;
    const are = known ? "are" : "are expected to be";
    const rate = (errors, of) => `${percent(errors / of)} (${known ? "" : "about "}${count(errors)})`;
    const allWrong = rate(without, dataset.nInstances * dataset.nLabels);
    if (answered === 0) return [`Without review, ${allWrong} of them would be wrong.`];
    const some = `Of its answers, ${rate(wrong, answered)} ${are} wrong`;
    const first = wrong === 0 ? `None of its answers ${are} wrong` : some;
    if (reviewed === 0) return [`${first}.`];
    const sentences = [`${first}; without review it would be ${allWrong}.`];
    if (known && without > 0) sentences.push(`Review catches ${percent(setting.caught / without)} of these errors.`);
    return sentences;
  }

  function disorder(setting, full) {
    const known = setting.realizedLoss !== null;
    const pairs = (of) => `${quantity(known ? of.realizedLoss : of.expectedLoss)} pairs per instance`;
    if (setting.answered === 0) return [`Ranking all labels, ${pairs(full)} would be in the wrong order.`];
    const are = known ? "are" : "are expected to be";
    const first = `Among the labels it ranks, ${pairs(setting)} ${are} in the wrong order`;
    return [setting.reviewed === 0 ? `${first}.` : `${first}; ranking all labels it would be ${pairs(full)}.`];
  }

  function work({ setting: { reviewed, nAbstained }, dataset: { nInstances, nLabels } }) {
    if (reviewed === 0 || nInstances === 1) return [];
    let untouched = 0;
    for (const open of nAbstained) untouched += open === 0 ? 1 : 0;
    const rest = untouched === 0
      ? "every instance needs a person"
      : `${percent(untouched / nInstances)} of the instances need nobody at all`;
    const each = `${quantity(reviewed / nInstances)} of ${plural(nLabels, "label")}`;
    return [`A person checks ${each} per instance on average; ${rest}.`];
  }

  function money({ bill }) {
    if (bill === null) return [];
    const costs = `${bill.isExpected ? "is expected to cost" : "costs"} ${quantity(bill.here)}`;
    const others = `${quantity(bill.nothing)} without review and ${quantity(bill.everything)} for reviewing everything`;
    return [`At these prices this ${costs}, against ${others}.`];
  }

  // Said aloud only when the slider has come to rest.
  const announce = Elements.afterPause(700, (text) => Elements.setText(Elements.byId("announcement"), text));

  function render(view) {
    const first = headline(view);
    const details = [...mistakes(view), ...work(view), ...money(view)].join(" ");
    Elements.setText(Elements.byId("headline"), first);
    Elements.setText(Elements.byId("details"), details);
    announce(`${first} ${details}`);
  }

  return Object.freeze({ render });
})();
