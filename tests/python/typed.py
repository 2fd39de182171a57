# SPDX-License-Identifier: BSD-3-Clause
"""Code as users write it.  tests/test_python_types.py checks its types with mypy --strict."""
import typing

import numpy as np

import sagitta
import sagitta.sklearn


def fitted(rows: np.typing.NDArray[np.float32]) -> sagitta.Run:
    run: sagitta.Run = sagitta.fit(rows, atoms=64, top_s=4, sweeps=3)
    more: sagitta.Run = sagitta.encode(rows, run, rounds=2)
    figures: typing.Dict[str, typing.Any] = sagitta.evaluate(rows, more)
    print(figures["explained_variance"], [str(warning) for warning in run.warnings])
    sagitta.refit(rows, run).plot_history()
    return sagitta.open("output/run", check=True)


def described(run: sagitta.Run, rows: typing.Any) -> float:
    d: sagitta.Dictionary = run.dictionary
    atoms, codes = d.support(rows, top_s=4, threads=2)
    d.save("d.h5", overwrite=True)
    other = sagitta.Dictionary.from_arrays(d.atoms, mean=d.mean, top_s=8)
    encoder: sagitta.Encoder = sagitta.Encoder.open("output/train")
    print(atoms, codes, other == d, encoder.encode(rows, format="dense"), d.direction(3))
    sagitta.export(d, "sae", to="saelens", rows=rows)
    return d.explained_variance(rows) + sagitta.explained_variance(rows, d.decode(codes))


def looked(run: sagitta.Run, tokens: typing.Sequence[int]) -> typing.List[str]:
    features = sagitta.Features(run, tokens, labels={17: "rivers"})
    feature = features.search("river", n=1)[0]
    features.save_html("features.html", atoms=[feature.atom])
    words: typing.List[typing.Tuple[str, float]] = feature.words()
    return [word for word, _ in words] + [one.before for one in feature.top(n=2)]


def compared(a: sagitta.Run, b: sagitta.Run, rows: typing.Any) -> float:
    survey: sagitta.Survey = sagitta.survey(rows, atoms=(64, 128), seeds=(0, 1))
    best: sagitta.Trial = survey.best
    print(survey.why, [trial.seconds for trial in survey], best.atoms)
    return sagitta.compare(a, b).pw_mcc


def estimated(rows: typing.Any) -> typing.Any:
    try:
        return sagitta.sklearn.SparseDictionary(64, n_nonzero_coefs=4).fit(rows).transform(rows)
    except sagitta.Interrupted as stop:
        print(stop.output)
    except sagitta.Error as error:
        print(error.code)
    sagitta.selftest()
