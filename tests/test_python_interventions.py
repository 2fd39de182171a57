# SPDX-License-Identifier: BSD-3-Clause
"""Claim: steer, ablate, replace and capture of sagitta.torch change the output of a module as their
formula says, and nothing else.  Where no code changes, no bit changes.  An exception at any line
leaves no hook and no file, and the model as it was."""
import collections
import copy
import doctest
import os
import sys
import tempfile
import warnings

from peer import peer_needed
from tap import SAGITTA, claim, done_testing, ok

PEERS = sys.argv[1:]  # "transformers": test its models too
peer_needed("torch", "numpy", "h5py", *PEERS)

os.environ["SAGITTA_PROGRAM"] = os.path.abspath(SAGITTA)  # libsagitta.so is beside it
import numpy as np  # noqa: E402, after a Python that has them was found
import torch  # noqa: E402

import sagitta  # noqa: E402
from sagitta.torch import Dictionary, ablate, capture, replace, steer  # noqa: E402

P, K, S, B, T = 12, 40, 5, 3, 7
NEAR = 1e-5  # for codes and sums in float32
OUTPUTS = {"tensor": lambda x: x, "tuple": lambda x: (x, None, 3), "list": lambda x: [x],
           "named": collections.namedtuple("Named", "hidden rest"), "dict": lambda x: {"hidden": x}}
OUTPUTS["named"] = (lambda kind: lambda x: kind(x, "rest"))(OUTPUTS["named"])


class Block(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.mlp, self.kind = torch.nn.Linear(P, P), kind

    def forward(self, x):
        return OUTPUTS[self.kind](x + torch.tanh(self.mlp(x)))


class Model(torch.nn.Module):
    """Blocks whose outputs have one of several types, and a head."""

    def __init__(self, kind="tensor"):
        super().__init__()
        torch.manual_seed(0)
        self.blocks = torch.nn.ModuleList([Block(kind), Block(kind)])
        self.head = torch.nn.Linear(P, 9)

    def forward(self, x):
        for block in self.blocks:
            x = tensor_of(block(x))
        return self.head(x)


def tensor_of(x):
    return x if isinstance(x, torch.Tensor) else x["hidden"] if isinstance(x, dict) else x[0]


def dictionary(**how):
    random = np.random.default_rng(1)
    atoms = random.standard_normal((K, P))
    atoms /= np.linalg.norm(atoms, axis=1)[:, None]
    return Dictionary(atoms.astype("f4"), random.standard_normal(P), S, **how)


def problem():
    """(x, d, an atom that some rows have, an atom that no row has)."""
    x = torch.from_numpy(np.random.default_rng(2).standard_normal((B, T, P)).astype("f4"))
    x[0, 0] = -0.0
    rows, _ = output_of(Model(), x)
    used = (dictionary().encode(torch.from_numpy(rows)) != 0).sum(0)
    some = int(used.argmax())
    ok(0 < used[some] < B * T and (used == 0).any(), "atoms in some rows and in none")
    return x, dictionary(), some, int((used == 0).nonzero()[0])


def output_of(model, x, name="blocks.0"):
    with torch.no_grad(), capture(model, name) as rows:
        y = model(x)
    return np.asarray(rows), y


def hooks_of(model):
    return sum(len(part._forward_hooks) for part in model.modules())


@claim("interventions that change no code change no bit, with any output of a module")
def check_empty(x, d, some, unused):
    for kind in OUTPUTS:
        model = Model(kind)
        plain = model(x)
        for name, nothing in (
                ("steer", steer(model, "blocks.0", d, {})),
                ("no positions", steer(model, "blocks.0", d, {some: 3.0}, positions=[])),
                ("add 0", steer(model, "blocks.0", d, {some: 0.0})),
                ("scale by 1", steer(model, "blocks.0", d, {some: 1.0, unused: 2.0}, "scale")),
                ("ablate", ablate(model, "blocks.0", d, [])),
                ("an unused atom", ablate(model, "blocks.0", d, [unused])),
                ("capture", capture(model, "blocks.0"))):
            with nothing:
                ok(model(x).detach().numpy().tobytes() == plain.detach().numpy().tobytes(),
                   f"{kind}, {name}")
        with steer(model, "blocks.0", d, {some: 1.0}):
            y = model(x)
        ok(not torch.equal(y, plain) and hooks_of(model) == 0, f"{kind}: it is changed")
        ok(type(model.blocks[0](x)) is type(OUTPUTS[kind](x)), kind)
    model, rows = torch.nn.Sequential(torch.nn.Identity()), x.reshape(-1, P)
    has = d.encode(rows)
    atom = int(((has[0] == 0) & (has[1:] != 0).any(0)).nonzero()[0])
    for made in ablate(model, "0", d, [atom]), steer(model, "0", d, {atom: 2.0}, "scale"):
        with made:
            y = model(rows)
        same = (has[:, atom] == 0).numpy()
        ok(y.numpy()[same].tobytes() == rows.numpy()[same].tobytes() and
           (y != rows).any(1).numpy().tolist() == (~same).tolist(), "-0.0 in rows without the atom")


def expected(rows, d, atoms, new, chosen):
    """x + (c' - c) D in float64, with the codes of encode()."""
    codes = d.encode(torch.from_numpy(rows)).double().numpy()
    after = codes.copy()
    after[:, atoms] = np.where(chosen[:, None], new(codes[:, atoms], chosen), codes[:, atoms])
    return rows + (after - codes) @ d.W_dec.double().numpy()


def selections():
    """Yields (positions, mask of the B T rows that they select)."""
    mask = np.random.default_rng(3).random((B, T)) < 0.5
    every = np.zeros((B, T), bool)
    for positions in None, -1, slice(2, 4), [0, 3], torch.tensor([1]), np.arange(T) > 4:
        one = every.copy()
        one[:, slice(None) if positions is None else positions] = True
        yield positions, one.reshape(-1)
    yield mask, mask.reshape(-1)
    yield torch.from_numpy(mask.astype("i8")), mask.reshape(-1)


@claim("each intervention follows its formula, in the rows that positions select and in no others")
def check_formulas(x, some):
    for how in ({}, {"codes": "nonnegative"}, {"compute": "torch", "rounds": S}):
        d, model = dictionary(**how), Model("tuple")
        atoms = [some, some + 1, some + 5]
        before, _ = output_of(model, x)
        for positions, chosen in selections():
            for name, made, new in (
                    ("add", steer(model, "blocks.0", d, dict(zip(atoms, (4, -1, 2))),
                                  positions=positions), lambda c, _: c + [4, -1, 2]),
                    ("set", steer(model, "blocks.0", d, dict(zip(atoms, (4, 0, 2))), "set",
                                  positions), lambda c, _: c * 0 + [4, 0, 2]),
                    ("scale", steer(model, model.blocks[0], d, dict(zip(atoms, (2, 0, -1))),
                                    "scale", positions), lambda c, _: c * [2, 0, -1]),
                    ("to 0", ablate(model, "blocks.0", d, atoms, positions=positions),
                     lambda c, _: c * 0),
                    ("to each", ablate(model, "blocks.0", d, atoms, [1, 2, 3], positions),
                     lambda c, _: c * 0 + [1, 2, 3]),
                    ("to the mean", ablate(model, "blocks.0", d, atoms, "mean", positions),
                     lambda c, chosen: c * 0 + c[chosen].mean(0))):
                with made:
                    after, _ = output_of(model, x)
                want = expected(before, d, atoms, new, chosen)
                far = np.abs(after - want).max()
                ok(far < NEAR and after[~chosen].tobytes() == before[~chosen].tobytes(),
                   f"{name}, {how}, {positions}: {far}")
            with replace(model, "blocks.0", d, positions):
                after, _ = output_of(model, x)
            want = np.where(chosen[:, None], d(torch.from_numpy(before)).numpy(), before)
            ok(np.abs(after - want).max() < NEAR, f"replace, {how}, {positions}")


@claim("several interventions of one module act in turn, with any kind of dictionary and 16-bit "
       "types")
def check_kinds(x, d, some):
    model = Model()
    with steer(model, "blocks.0", d, {some: 3.0}, "set"), ablate(model, "blocks.0", d, [some]):
        both, _ = output_of(model, x)
    before, _ = output_of(model, x)
    ok(np.abs(both - before).max() > 0.1, "the code that was set is in the support of what follows")
    other = sagitta.Dictionary.from_arrays(d.W_dec.numpy(), d.mean.numpy(), top_s=S)
    with ablate(model, "blocks.0", other, [some]):
        a, _ = output_of(model, x)
    with ablate(model, "blocks.0", d, [some]):
        b, _ = output_of(model, x)
        ok(a.tobytes() == b.tobytes(), "a sagitta.Dictionary")
    small = Model().to(torch.bfloat16)
    for made in (steer(small, "blocks.0", d, {some: 4.0}), replace(small, "blocks.0", d),
                 steer(small, "blocks.1", d, {some: 4.0}, "set")):
        with made:
            ok(small(x.bfloat16()).dtype == torch.bfloat16, "bfloat16")
    with torch.autocast("cpu", torch.bfloat16), ablate(model, "blocks.0", d, [some]):
        ok(torch.isfinite(model(x)).all(), "autocast")


@claim("gradients flow through the change, as numerical ones show")
def check_gradients(some):
    x = torch.from_numpy(np.random.default_rng(4).standard_normal((4, P))).requires_grad_()
    model, d = torch.nn.Sequential(torch.nn.Identity()).double(), dictionary(compute="torch")
    for name, made in (("scale", lambda: steer(model, "0", d, {some: 3.0, some + 1: -1}, "scale")),
                       ("set", lambda: steer(model, "0", d, {some: 3.0}, "set")),
                       ("mean", lambda: ablate(model, "0", d, [some, some + 1], "mean")),
                       ("replace", lambda: replace(model, "0", d))):
        def run(rows):
            with made():
                return model(rows)
        ok(torch.autograd.gradcheck(run, (x,), eps=1e-3, atol=2e-3, rtol=1e-2), name)


@claim("captured rows are those that the mask selects, in memory or in a file, and can be fitted")
def check_capture(folder, x):
    model, mask = Model("dict"), torch.arange(T) < torch.tensor([[7], [2], [4]])
    whole, _ = output_of(model, x)
    with capture(model, "blocks.0", mask.long()) as rows, \
            capture(model, "blocks.0", output=f"{folder}/rows.npy") as filed:
        model(x)
        rows.mask = ~mask
        model(x)
        ok(not os.path.exists(filed.output), "the file is not there yet")
    bits = mask.reshape(-1).numpy()
    want = np.concatenate([whole[bits], whole[~bits]])
    ok(np.asarray(rows).tobytes() == want.tobytes() and len(rows) == B * T,
       "rows of two masks are captured")
    ok(np.load(filed.output).tobytes() == np.concatenate([whole, whole]).tobytes() and
       np.asarray(filed).shape == (2 * B * T, P) and os.listdir(folder) == ["rows.npy"], "a file")
    with capture(model, "blocks.0") as rows:
        model(x)
    with rows:
        model(x)
    ok(np.asarray(rows).tobytes() == np.concatenate([whole, whole]).tobytes(), "two blocks")
    refused([filed.output, "another capture"], filed.__enter__)
    with capture(model, "blocks.0", output=f"{folder}/two.npy") as two:
        model(x)
        refused(["two.npy", "another capture"], two.__enter__)
        model(x)
    for name in "rows.npy", "two.npy":
        ok(np.load(f"{folder}/{name}").tobytes() == np.concatenate([whole, whole]).tobytes(),
           f"{name} is as its one block left it")
    ok(hooks_of(model) == 0 and sorted(os.listdir(folder)) == ["rows.npy", "two.npy"], "no more")
    with capture(model, "blocks.0") as rows:
        for i in range(60):
            model(x + 0.01 * i)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no rows are held out
        run = sagitta.fit(rows, atoms=8, top_s=2, sweeps=1, holdout=0, progress=None)
    ok(run.codes.shape == (60 * B * T, 8), "a fit of them")


class Cut(Exception):
    """The exception that a test raises."""


OWN = {sys.modules[f"sagitta.{name}"].__file__ for name in ("hooks", "interventions", "capture")}


def cut_at(step):
    """Raise at the step-th line of the package that runs."""
    left = [step]

    def trace(frame, event, _):
        if frame.f_code.co_filename not in OWN:
            return None
        if event == "line":
            left[0] -= 1
            if left[0] == 0:
                raise Cut
        return trace
    return trace


def ran(model, x, make):
    with make(model):
        model(x)


def cut_everywhere(name, model, x, make, folder):
    """Raise at each line in turn.  Returns the number of lines."""
    before, plain = copy.deepcopy(model.state_dict()), model(x)
    for step in range(1, 2000):
        done = False
        sys.settrace(cut_at(step))
        try:
            ran(model, x, make)
            done = True
        except Cut:
            pass
        finally:
            sys.settrace(None)
        files = [file for file in os.listdir(folder) if file.endswith(".tmp")]
        ok(hooks_of(model) == 0 and not files, f"{name}, step {step}: {hooks_of(model)} {files}")
        if done:
            break
    ok(done, f"{name}: it never ended")
    ok(torch.equal(model(x), plain) and all(
        torch.equal(a, b) for a, b in zip(before.values(), model.state_dict().values())), name)
    return step


@claim("an exception at any line leaves no hook and no file, and does not change the model")
def check_cut(folder, x, d, some):
    model = Model("tuple")
    for name, make in (
            ("steer", lambda m: steer(m, "blocks.0", d, {some: 2.0}, "set", [1])),
            ("ablate", lambda m: ablate(m, "blocks.0", d, [some], "mean")),
            ("replace", lambda m: replace(m, "blocks.0", d)),
            ("capture", lambda m: capture(m, "blocks.0")),
            ("file", lambda m: capture(m, "blocks.0", output=f"{folder}/cut.npy"))):
        steps = cut_everywhere(name, model, x, make, folder)
        ok(steps > 20, f"{name} has {steps} steps")
    for error in Cut, KeyboardInterrupt, SystemExit, GeneratorExit:
        os.path.exists(f"{folder}/cut.npy") and os.unlink(f"{folder}/cut.npy")
        try:
            with steer(model, "blocks.0", d, {some: 2.0}), \
                    capture(model, "blocks.1", output=f"{folder}/cut.npy"):
                model(x)
                raise error
        except error:
            pass
        ok(hooks_of(model) == 0 and "cut" not in "".join(os.listdir(folder)), f"{error}")
    steer(model, "blocks.0", d, {some: 2.0}).__enter__()
    ok(hooks_of(model) == 0, "one that is dropped")


def refused(words, call):
    try:
        call()
    except sagitta.InputError as error:
        return ok(all(w in str(error) for w in words), f"{words}: {error}")
    return ok(False, f"{words}: nothing was said")


@claim("impossible requests are refused, and the message names possible ones")
def check_errors(x, d):
    model = Model()

    def run(made):
        with made:
            model(x)
    refused(["no module 'block.0'", "blocks.0"], lambda: steer(model, "block.0", d, {1: 1.0}))
    refused(["9 columns, atoms have 12", "blocks.0", "blocks.1"],
            lambda: run(replace(model, "head", d)))
    refused([f"no atom {K}", f"0 to {K - 1}"], lambda: ablate(model, "blocks.0", d, [K]))
    refused(["no atom -1"], lambda: ablate(model, "blocks.0", d, [-1]))
    refused(["atom 1.0"], lambda: ablate(model, "blocks.0", d, [1.0]))
    refused(["twice"], lambda: ablate(model, "blocks.0", d, [3, 3]))
    refused(["mode is 'times'", "scale"], lambda: steer(model, "blocks.0", d, {1: 1}, "times"))
    refused(["{17: 4.0}"], lambda: steer(model, "blocks.0", d, [17]))
    refused(["not finite"], lambda: steer(model, "blocks.0", d, {1: float("nan")}))
    refused(["no numbers"], lambda: steer(model, "blocks.0", d, {1: "much"}))
    refused(["to is 'median'"], lambda: ablate(model, "blocks.0", d, [1], "median"))
    refused(["2 numbers", "1 atoms"], lambda: ablate(model, "blocks.0", d, [1], [1, 2]))
    refused(["positions", f"below {T}"], lambda: run(replace(model, "blocks.0", d, T)))
    refused(["positions", f"({B}, {T})"],
            lambda: run(replace(model, "blocks.0", d, torch.ones(B, 2))))
    refused(["Linear"], lambda: replace(model, "blocks.0", torch.nn.Linear(3, 3)))
    refused(["ends in .npy"], lambda: capture(model, "blocks.0", output="rows.h5"))
    refused(["a vector"], lambda: run_of_vector(d))
    model.blocks[0].kind = "none"
    OUTPUTS["none"] = lambda _: None
    refused(["NoneType"], lambda: run(replace(model, "blocks.0", d)))
    ok(hooks_of(model) == 0, "no hook is left")


@claim("the example of the docstring runs")
def check_docstring():
    done = doctest.testmod(sys.modules["sagitta.interventions"])
    ok(done.attempted > 3 and not done.failed, f"{done}")


def run_of_vector(d):
    model = torch.nn.Sequential(torch.nn.Identity())
    with replace(model, "0", d):
        model(torch.ones(P))


@claim("in models of transformers an intervention without effect changes no logit, and ablation "
       "removes only its part")
def check_transformers():
    import transformers as t
    torch.manual_seed(0)
    small = {"vocab_size": 30, "bos_token_id": 1, "eos_token_id": 2}
    gpt = t.GPT2LMHeadModel(t.GPT2Config(n_layer=2, n_head=2, n_embd=P, n_positions=32, **small))
    bert = t.BertModel(t.BertConfig(num_hidden_layers=2, num_attention_heads=2, hidden_size=P,
                                    intermediate_size=20, vocab_size=30))
    ids = torch.randint(3, 30, (2, 9))
    for model, name, whole in ((gpt, "transformer.h.0", "logits"),
                               (bert, "encoder.layer.0", "last_hidden_state"),
                               (bert, "encoder", "last_hidden_state")):
        model.eval()
        d = dictionary()
        plain = model(ids)[whole]
        with capture(model, name) as rows:
            model(ids)
        codes = d.encode(torch.from_numpy(np.asarray(rows)))
        atom = int((codes != 0).sum(0).argmax())
        for nothing in steer(model, name, d, {}), ablate(model, name, d, []):
            with nothing:
                ok(torch.equal(model(ids)[whole], plain), f"{name}: nothing")
        with ablate(model, name, d, [atom]), capture(model, name) as after:
            changed = model(ids)
        want = np.asarray(rows) - (codes[:, atom:atom + 1] * d.W_dec[atom]).numpy()
        ok(np.abs(np.asarray(after) - want).max() < NEAR, f"{name}: its part alone")
        ok(type(changed) is type(model(ids)) and not torch.equal(changed[whole], plain) and
           hooks_of(model) == 0, f"{name}: it is another")
    with steer(gpt, "transformer.h.0", dictionary(), {3: 50.0}, positions=-1):
        said = gpt.generate(ids, max_new_tokens=3, do_sample=False, pad_token_id=0)
    ok(said.shape[1] > ids.shape[1], "generation")
    refused(["transformer.h.0"], lambda: run_with(replace(gpt, "lm_head", dictionary()), gpt, ids))


@claim("a hook point of TransformerLens is a module like any other")
def check_hook_points():
    import transformer_lens as lens
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TransformerLens warns that it changes the class in 4.0
        model = lens.HookedTransformer(lens.HookedTransformerConfig(
            n_layers=2, d_model=P, n_ctx=32, d_head=4, n_heads=2, d_mlp=20, act_fn="relu",
            d_vocab=30, device="cpu"))
    model.eval()
    ids, d, name = torch.randint(3, 30, (2, 9)), dictionary(), "blocks.0.hook_resid_post"
    plain = model(ids)
    with steer(model, name, d, {}), ablate(model, name, d, []):
        ok(torch.equal(model(ids), plain), "nothing")
    _, cache = model.run_with_cache(ids)
    with capture(model, name) as rows:
        model(ids)
    ok(np.array_equal(np.asarray(rows), cache[name].detach().reshape(-1, P).numpy()),
       "captured rows are those of the cache")
    codes = d.encode(torch.from_numpy(np.asarray(rows)))
    atom = int((codes != 0).sum(0).argmax())
    with ablate(model, name, d, [atom]):
        changed = model(ids)

    def by_hand(x, hook):
        part = (d.encode(x.detach())[..., atom:atom + 1] * d.W_dec[atom])
        return x - part
    theirs = model.run_with_hooks(ids, fwd_hooks=[(name, by_hand)])
    ok((changed - theirs).abs().max() < NEAR and not torch.equal(changed, plain), "their hooks")
    ok(hooks_of(model) == 0, "no hook is left")


def run_with(made, model, x):
    with made:
        model(x)


def main():
    with tempfile.TemporaryDirectory() as folder:
        x, d, some, unused = problem()
        check_empty(x, d, some, unused)
        check_formulas(x, some)
        check_kinds(x, d, some)
        check_gradients(some)
        check_capture(folder, x)
        check_cut(folder, x, d, some)
        check_errors(x, d)
        check_docstring()
        if PEERS:
            check_transformers()
            check_hook_points()
    done_testing()


if __name__ == "__main__":
    main()
