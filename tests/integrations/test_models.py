"""The recipes of docs/models.md, run as they are there, each with its real library; `make models` installs them all."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neural_network import MLPClassifier

import abstain

PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
RECIPES = {title: re.findall(r"```python\n(.*?)```", text, re.DOTALL) for title, text in SECTIONS.items()}

X, Y = make_multilabel_classification(300, n_features=10, n_classes=4, random_state=0)
X, X_NEW = X[:200].astype(np.float32), X[200:].astype(np.float32)
Y, Y_NEW = Y[:200], Y[200:]
NAMES = ["sky", "sea", "boat"]
TEXTS = ["the sea is blue", "boat on the sea", "the sky is blue and the boat"] * 9

# Libraries warn of their own affairs; what this one warns of is an error.
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.filterwarnings("error::abstain.ProbabilityWarning")]


def run(title, **given):
    """Run the blocks of a section one after the other, and return all that they define."""
    found = {"abstain": abstain, **given}
    for block in RECIPES[title]:
        exec(compile(block, f"docs/models.md, {title}", "exec"), found)
    return found


def test_every_recipe_is_tried():
    tried = re.findall(r'run\(\s*"(.*?)"', Path(__file__).read_text(encoding="utf-8"))
    assert sorted({title for title, blocks in RECIPES.items() if blocks}) == sorted(set(tried))


def check(prediction, probabilities):
    """The prediction is that for these P(label is relevant)."""
    expected = abstain.decide(np.asarray(probabilities, np.float64), penalty=0.2)
    np.testing.assert_array_equal(prediction.labels, expected.labels)
    np.testing.assert_allclose(prediction.expected_loss, expected.expected_loss, rtol=1e-5)


# Boosted trees


def test_xgboost():
    xgboost = pytest.importorskip("xgboost")
    found = run("XGBoost", X=X, Y=Y, X_new=X_NEW)
    by_label = [xgboost.XGBClassifier(n_estimators=20).fit(X, y).predict_proba(X_NEW)[:, 1] for y in Y.T]
    np.testing.assert_allclose(found["model"].predict_proba(X_NEW), np.column_stack(by_label), atol=1e-5)
    check(found["prediction"], found["model"].predict_proba(X_NEW))
    model = abstain.AbstainingClassifier(xgboost.XGBClassifier(n_estimators=20), calibration="sigmoid").fit(X, Y)
    assert model.decide(X_NEW).shape == Y_NEW.shape


def test_catboost():
    pytest.importorskip("catboost")
    found = run("CatBoost", X=X, Y=Y, X_new=X_NEW)
    raw = found["model"].predict(X_NEW, prediction_type="RawFormulaVal")
    np.testing.assert_allclose(found["model"].predict_proba(X_NEW), expit(raw), atol=1e-6)
    check(found["prediction"], expit(raw))
    check(abstain.decide(abstain.label_probabilities(raw, kind="logit"), penalty=0.2), expit(raw))


def test_lightgbm():
    pytest.importorskip("lightgbm")
    found = run("LightGBM", X=X, Y=Y, X_new=X_NEW)
    each = [model.predict_proba(X_NEW)[:, 1] for model in found["model"].estimators_]
    check(found["prediction"], np.column_stack(each))


# Neural networks


@pytest.fixture
def torch():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    return torch


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_torch(torch, dtype):
    network = torch.nn.Linear(10, 4).to(getattr(torch, dtype))
    logits = network(torch.tensor(X_NEW, dtype=getattr(torch, dtype)))
    assert logits.requires_grad
    found = run("PyTorch", torch=torch, network=lambda _: logits, features=None)
    exact = expit(logits.detach().double().numpy())
    np.testing.assert_allclose(found["probabilities"], exact, rtol=1e-14)
    check(found["prediction"], exact)
    rounded = torch.sigmoid(logits).detach().double().numpy()
    check(found["same"], rounded)
    assert abstain.calibration.brier_score_loss(Y_NEW, torch.sigmoid(logits)) == pytest.approx(
        abstain.calibration.brier_score_loss(Y_NEW, rounded)
    )
    calibration = abstain.calibration.fit(logits, Y_NEW, method="sigmoid", kind="logit")
    as_double = calibration.transform(logits.detach().double().numpy())
    np.testing.assert_allclose(calibration.transform(logits), as_double, atol=1e-7)
    truth = torch.tensor(Y_NEW)
    assert abstain.metrics.answered_error_rate(truth, found["same"]) == abstain.metrics.answered_error_rate(
        Y_NEW, found["same"]
    )


def test_torch_softmax_and_logits_as_probabilities(torch):
    logits = torch.nn.Linear(10, 4)(torch.tensor(X_NEW))
    for dtype in (torch.float32, torch.bfloat16):
        with pytest.warns(abstain.ProbabilityWarning, match="every row adds up to 1"):
            abstain.decide(torch.softmax(logits, 1).to(dtype))
    with pytest.raises(abstain.NoProbabilities, match="apply the sigmoid"):
        abstain.decide(logits)
    with pytest.raises(abstain.NoProbabilities, match="divide them by 100"):
        abstain.decide(100 * torch.sigmoid(logits))


def test_torch_models_and_lists(torch):
    network = torch.nn.Linear(10, 4)
    with pytest.raises(abstain.InvalidProbabilities, match="Linear has no predict_proba; pass what it returns"):
        abstain.label_probabilities(network, X_NEW)
    p = torch.sigmoid(network(torch.tensor(X_NEW)))
    two_classes = torch.stack([1 - p, p], dim=2).to(torch.bfloat16)
    expected = two_classes[:, :, 1].detach().float().numpy()
    for output in (
        two_classes,
        two_classes.transpose(1, 2),
        two_classes.transpose(0, 1),
        list(two_classes.transpose(0, 1)),
    ):
        np.testing.assert_array_equal(abstain.label_probabilities(output, X_NEW), expected)
    np.testing.assert_array_equal(abstain.decide(list(p)).labels, abstain.decide(p).labels)
    for batches in ([p[:50], p[50:]], [p[:30], p[30:]]):
        with pytest.raises(abstain.InvalidProbabilities, match=r"torch\.cat"):
            abstain.decide(batches)


def test_jax():
    jax = pytest.importorskip("jax")
    logits = jax.numpy.asarray(np.random.default_rng(0).normal(0, 2, (50, 4)))
    found = run("JAX", jax=jax, logits=logits)
    assert found["probabilities"].dtype == jax.numpy.bfloat16
    check(found["prediction"], np.asarray(found["probabilities"]).astype(np.float64))


@pytest.mark.parametrize("n_labels", [4, 2])
def test_skorch(torch, n_labels):
    skorch = pytest.importorskip("skorch")

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(10, n_labels)

        def forward(self, features):
            return self.layer(features)

    found = run("skorch", torch=torch, Network=Network, X=X, Y=Y[:, :n_labels], X_new=X_NEW)
    model = found["model"]
    assert model.predict_proba(X_NEW).shape == (100, 2, n_labels)
    logits = model.forward(X_NEW).numpy()
    np.testing.assert_allclose(abstain.label_probabilities(model, X_NEW), expit(logits), atol=1e-6)
    settings = {"criterion": torch.nn.BCEWithLogitsLoss, "classes": [0, 1], "verbose": 0}
    for nonlinearity, kind in ((torch.sigmoid, "probability"), (None, "logit")):
        other = skorch.NeuralNetClassifier(model.module_, predict_nonlinearity=nonlinearity, **settings).initialize()
        np.testing.assert_allclose(abstain.label_probabilities(other, X_NEW, kind=kind), expit(logits), atol=1e-6)


# Texts


@pytest.fixture
def tokenizer():
    """Ten words, built here: nothing is downloaded."""
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    words = {word: i for i, word in enumerate(["[UNK]", "[PAD]", *sorted(set(" ".join(TEXTS).split()))])}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, unk_token="[UNK]", pad_token="[PAD]")


def random_bert(torch, labels, problem_type=None):
    """A tiny BERT with random weights."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=20, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        id2label=dict(enumerate(labels)), label2id={label: j for j, label in enumerate(labels)},
        problem_type=problem_type, initializer_range=0.5,
    )  # fmt: skip
    return transformers.BertForSequenceClassification(config).eval()


def logits_of(torch, model, tokenizer):
    with torch.no_grad():
        return model(**tokenizer(TEXTS, return_tensors="pt", padding=True)).logits.double().numpy()


def test_pipelines(torch, tokenizer):
    model = random_bert(torch, NAMES, "multi_label_classification")
    entailment_model = random_bert(torch, ["contradiction", "neutral", "entailment"])
    found = run(
        "Hugging Face: pipelines", model=model, tokenizer=tokenizer, entailment_model=entailment_model, texts=TEXTS
    )
    expected = expit(logits_of(torch, model, tokenizer))
    np.testing.assert_allclose(found["table"].values, expected, atol=1e-5)
    assert found["table"].label_names == tuple(NAMES)
    classify = found["classify"]
    one = abstain.label_probabilities(classify(TEXTS[0]), labels=NAMES)
    np.testing.assert_allclose(one.values, expected[:1], atol=1e-5)
    assert found["answers"][0].keys() == {"sequence", "labels", "scores"}
    assert found["prediction"].shape == (len(TEXTS), 3)
    with pytest.raises(abstain.InvalidProbabilities, match="top_k=None"):
        abstain.decide(classify(TEXTS, top_k=1))
    with pytest.raises(abstain.InvalidProbabilities, match=f"the best label of each of {len(TEXTS)} texts"):
        abstain.decide([row[0] for row in found["records"]])
    softmax = random_bert(torch, NAMES, "single_label_classification")
    pipeline = pytest.importorskip("transformers").pipeline
    with pytest.warns(abstain.ProbabilityWarning, match=r'problem_type="multi_label_classification"'):
        abstain.decide(pipeline("text-classification", model=softmax, tokenizer=tokenizer, top_k=None)(TEXTS))


def test_trainer(torch, tokenizer, tmp_path):
    pytest.importorskip("accelerate")
    transformers = pytest.importorskip("transformers")
    model = random_bert(torch, NAMES, "multi_label_classification")
    truth = np.random.default_rng(0).integers(0, 2, (len(TEXTS), 3)).astype(np.float32)
    encoded = tokenizer(TEXTS, padding=True)["input_ids"]
    dataset = [{"input_ids": ids, "labels": labels} for ids, labels in zip(encoded, truth, strict=True)]
    arguments = transformers.TrainingArguments(str(tmp_path), report_to=[], use_cpu=True, disable_tqdm=True)
    trainer = transformers.Trainer(model, arguments)
    found = run("Hugging Face: Trainer", trainer=trainer, dataset=dataset)
    logits = found["output"].predictions
    check(found["prediction"], expit(logits))
    selecting = transformers.Trainer(
        model, arguments, eval_dataset=dataset, compute_metrics=found["compute_metrics"]
    ).evaluate()
    assert selecting["eval_generalized_loss"] == pytest.approx(found["loss"])
    with pytest.raises(abstain.InvalidProbabilities, match="label 'logits' is tensor"):
        abstain.decide(model(input_ids=torch.tensor(encoded)))


def test_spacy():
    spacy = pytest.importorskip("spacy")
    spacy.util.fix_random_seed(0)
    nlp = spacy.blank("en")
    classifier = nlp.add_pipe("textcat_multilabel")
    for name in NAMES:
        classifier.add_label(name)
    examples = [
        spacy.training.Example.from_dict(nlp.make_doc(text), {"cats": {name: float(name in text) for name in NAMES}})
        for text in TEXTS
    ]
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(3):
        nlp.update(examples, sgd=optimizer)
    found = run("spaCy", nlp=nlp, texts=TEXTS)
    assert found["prediction"].label_names == tuple(NAMES) == classifier.labels
    check(found["prediction"], classifier.predict([nlp.make_doc(text) for text in TEXTS]))


# ONNX


@pytest.mark.parametrize("zipmap", [True, False])
@pytest.mark.parametrize("name", ["one-vs-rest", "multi-output", "forest", "network", "one-vs-rest of 2"])
def test_onnx(name, zipmap):
    skl2onnx = pytest.importorskip("skl2onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    model = {
        "one-vs-rest": OneVsRestClassifier(LogisticRegression()),
        "one-vs-rest of 2": OneVsRestClassifier(LogisticRegression()),
        "multi-output": MultiOutputClassifier(LogisticRegression()),
        "forest": RandomForestClassifier(20, random_state=0),
        "network": MLPClassifier((4,), max_iter=30, random_state=0),
    }[name].fit(X, Y[:, :2] if name.endswith("2") else Y)
    if zipmap and name == "forest":
        pytest.skip("skl2onnx makes a graph of it that the runtime refuses")
    converted = skl2onnx.to_onnx(model, X[:1], options=None if zipmap else {id(model): {"zipmap": False}})
    session = onnxruntime.InferenceSession(converted.SerializeToString())
    found = run("ONNX", session=session, X_new=X_NEW)
    expected = abstain.label_probabilities(model, X_NEW)
    read = abstain.label_probabilities(found["outputs"][1], X_NEW)
    np.testing.assert_allclose(getattr(read, "values", read), expected, atol=1e-5)
    check(found["prediction"], getattr(read, "values", read))


def test_onnx_of_one_model_for_each_label():
    skl2onnx = pytest.importorskip("skl2onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    models = [LogisticRegression().fit(X, y) for y in Y.T]
    sessions = [onnxruntime.InferenceSession(skl2onnx.to_onnx(model, X[:1]).SerializeToString()) for model in models]
    outputs = [session.run(None, {"X": X_NEW})[1] for session in sessions]
    assert isinstance(outputs[0][0], dict)
    expected = np.column_stack([model.predict_proba(X_NEW)[:, 1] for model in models])
    np.testing.assert_allclose(abstain.label_probabilities(outputs), expected, atol=1e-5)


# Calibration


def test_calibration(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scores = np.random.default_rng(0).normal(0, 2, (500, 4))
    truth = (np.random.default_rng(1).random(scores.shape) < expit(scores / 2)).astype(int)
    found = run("Calibration", scores=scores, y_true=truth, new_scores=scores[:20])
    assert found["prediction"].shape == (20, 4)
    calibrated = found["calibration"].transform(scores)
    before, after = (abstain.calibration.brier_score_loss(truth, p) for p in (expit(scores), calibrated))
    assert after < before
    assert (tmp_path / "calibration.json").exists()
