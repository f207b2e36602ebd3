"use strict";

// The setting in sentences that need no statistics.
const Summary = (() => {
  const { count, percent, parts, plural, quantity } = Format;

  function headline({ setting: { reviewed, share }, dataset }) {
    const all = dataset.nInstances * dataset.nLabels;
    const decisions = plural(all, "label decision");
    if (reviewed === 0) return `The model answers all ${decisions} by itself. Nobody reviews anything.`;
    if (reviewed === all) return `All ${decisions} go to a person. The model answers nothing by itself.`;
    const [reviewedShare, answeredShare] = parts(share);
    const rest = `${reviewedShare} (${count(reviewed)}) ${reviewed === 1 ? "goes" : "go"} to a person.`;
    return `Of ${decisions}, the model answers ${answeredShare} by itself; ${rest}`;
  }

  function errors({ setting, full, dataset, loss }) {
    if (loss.givesRankings) return wrongPairs(setting, full);
    const { answered, reviewed } = setting;
    const known = setting.wrong !== null;
    const wrong = known ? setting.wrong : setting.expectedWrong;
    const without = known ? setting.wrongWithoutReview : full.expectedWrong;
    const are = known ? "are" : "are expected to be";
    const rate = (nWrong, of) => `${percent(nWrong / of)} (${known ? "" : "about "}${count(nWrong)})`;
    const allWrong = rate(without, dataset.nInstances * dataset.nLabels);
    if (answered === 0) return [`Without review, ${allWrong} of them would be wrong.`];
    const some = `Of its answers, ${rate(wrong, answered)} ${are} wrong`;
    const first = wrong === 0 ? `None of its answers ${are} wrong` : some;
    if (reviewed === 0) return [`${first}.`];
    const sentences = [`${first}; without review it would be ${allWrong}.`];
    if (known && without > 0) sentences.push(`Review catches ${percent(setting.caught / without)} of these errors.`);
    return sentences;
  }

  function wrongPairs(setting, full) {
    const known = setting.realizedLoss !== null;
    const pairs = (of) => `${quantity(known ? of.realizedLoss : of.expectedLoss)} pairs per instance`;
    if (setting.answered === 0) return [`Ranking all labels, ${pairs(full)} would be in the wrong order.`];
    const are = known ? "are" : "are expected to be";
    const first = `Among the labels it ranks, ${pairs(setting)} ${are} in the wrong order`;
    return [setting.reviewed === 0 ? `${first}.` : `${first}; ranking all labels it would be ${pairs(full)}.`];
  }

  function effort({ setting: { reviewed, nAbstained }, dataset: { nInstances, nLabels } }) {
    if (reviewed === 0 || nInstances === 1) return [];
    let complete = 0;
    for (const abstained of nAbstained) complete += abstained === 0 ? 1 : 0;
    const rest = complete === 0
      ? "every instance needs a person"
      : `${percent(complete / nInstances)} of the instances need nobody at all`;
    const each = `${quantity(reviewed / nInstances)} of ${plural(nLabels, "label")}`;
    return [`A person checks ${each} per instance on average; ${rest}.`];
  }

  function cost({ bill }) {
    if (bill === null) return [];
    const costs = `${bill.isExpected ? "is expected to cost" : "costs"} ${quantity(bill.here)}`;
    const others = `${quantity(bill.withoutReview)} without review and ${quantity(bill.reviewingAll)} for reviewing everything`;
    return [`At these prices this ${costs}, against ${others}.`];
  }

  // Screen readers are told only once the slider has come to rest.
  const announce = Elements.afterPause(700, (text) => Elements.setText(Elements.byId("announcement"), text));

  function render(view) {
    const first = headline(view);
    const details = [...errors(view), ...effort(view), ...cost(view)].join(" ");
    Elements.setText(Elements.byId("headline"), first);
    Elements.setText(Elements.byId("details"), details);
    announce(`${first} ${details}`);
  }

  return Object.freeze({ render });
})();
