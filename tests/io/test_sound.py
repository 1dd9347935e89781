"""A OneHotEncoder whose columns do not fit its categories is refused: its `transform` would write beyond an array."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from sparsebayes.io.archive import Refused
from sparsebayes.io.sound import check_values

X = np.array([[1.0, 5.0], [2.0, 6.0], [3.0, 6.0], [3.0, 6.0]])


def encoder(**parameters):
    return OneHotEncoder(**parameters).fit(X)


@pytest.mark.parametrize(
    "parameters",
    [{}, {"drop": "first"}, {"drop": "if_binary"}, {"max_categories": 2}, {"min_frequency": 2, "drop": "first"}],
    ids=str,
)
def test_what_fit_makes_is_sound(parameters):
    check_values(make_pipeline(encoder(**parameters)))
    check_values(OneHotEncoder(**parameters))


FORGED = {
    "fewer columns": ({}, {"_n_features_outs": [1, 1]}),
    "another number of features": ({}, {"_n_features_outs": [3]}),
    "not sorted": ({}, {"categories_": [np.array([3.0, 2.0, 1.0]), np.array([5.0, 6.0])]}),
    "twice the same": ({}, {"categories_": [np.array([1.0, 1.0, 2.0]), np.array([5.0, 6.0])]}),
    "drops what is not there": ({"drop": "first"}, {"_drop_idx_after_grouping": np.array([9, 0], dtype=object)}),
    "drops below zero": ({"drop": "first"}, {"_drop_idx_after_grouping": np.array([-1, 0], dtype=object)}),
    "drops a word": ({"drop": "first"}, {"_drop_idx_after_grouping": np.array(["0", 0], dtype=object)}),
    "groups below zero": (
        {"max_categories": 2},
        {"_default_to_infrequent_mappings": [np.array([-7, 1, 0]), None]},
    ),
    "too many groups": ({"max_categories": 2}, {"_default_to_infrequent_mappings": [np.array([1, 900, 0]), None]}),
    "groups of other categories": ({"max_categories": 2}, {"_default_to_infrequent_mappings": [np.array([1]), None]}),
}


@pytest.mark.parametrize("forgery", FORGED)
def test_what_fit_cannot_make_is_refused(forgery):
    parameters, attributes = FORGED[forgery]
    made = encoder(**parameters)
    vars(made).update(attributes)
    with pytest.raises(Refused, match="OneHotEncoder"):
        check_values(make_pipeline(made))
