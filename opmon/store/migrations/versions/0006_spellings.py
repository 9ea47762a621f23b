"""Labels may call a class otherwise: what else it is called is kept with the round."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("rounds", sa.Column("spellings", sa.JSON(none_as_null=True)))


def downgrade() -> None:
    op.drop_column("rounds", "spellings")
